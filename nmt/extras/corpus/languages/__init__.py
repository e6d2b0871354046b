"""Identifies the languages of a corpus, and finds pairs with a side in another language."""
