"""Finds the pairs of a corpus that are no translations, by a model that is trained on the corpus itself."""
