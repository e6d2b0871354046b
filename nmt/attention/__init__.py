"""Attention: a score, then weights, then a weighted sum. Every mechanism is one file of ``scores`` or ``weights``."""
