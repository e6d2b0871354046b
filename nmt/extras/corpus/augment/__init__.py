"""More training pairs: from text of one language, and from the pairs that are there."""
