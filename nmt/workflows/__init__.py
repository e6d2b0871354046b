"""Plain functions, one per command, that build the objects and call them."""
