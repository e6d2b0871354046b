"""Speed: implementations of ``nmt.ops``, and ``optimize``, which makes a trained model ready for searches.

Nothing outside this package names a kernel, a type of CPU or a measured threshold. Each part makes a whole command at
least 1.2 times as fast (docs/measurements/speed.md has the figures); NMT_KERNELS=off turns the kernels off.
"""
