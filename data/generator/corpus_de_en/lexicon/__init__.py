"""The word tables of the corpus grammar."""
