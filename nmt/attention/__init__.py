"""Attention: a score, then weights, then a weighted sum. Each mechanism has a file of its own in ``scores`` or
``weights``."""
