"""A hand-written German-English grammar that generates a small parallel corpus.

See data/generator/README.md for what each module has.
"""
