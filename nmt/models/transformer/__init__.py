"""The encoder and decoder of attention alone."""
