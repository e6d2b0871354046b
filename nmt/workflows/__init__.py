"""One plain function per command: builds the objects and calls them."""
