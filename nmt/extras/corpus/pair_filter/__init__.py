"""Finds the pairs of a corpus that are not translations, by a model that is trained on the corpus itself."""
