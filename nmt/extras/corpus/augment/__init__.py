"""Additional training pairs, from text of one language and from existing pairs."""
