"""Scores of a key for a query, one file each."""
