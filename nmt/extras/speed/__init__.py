"""Speed: implementations of ``nmt.ops``, and ``optimize``, which prepares a trained model for searches.

Code that exists only for speed is here; docs/architecture.md names some outside that knows the machine, too. Each part
makes a whole command at least 1.2 times as fast (docs/measurements/speed.md has the figures); NMT_KERNELS=off turns the
kernels off.
"""
