"""The sentence patterns, grouped by kind; ``grammar.Grammar`` combines them."""
