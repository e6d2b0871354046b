"""A trained model that translates, scores and aligns text."""
