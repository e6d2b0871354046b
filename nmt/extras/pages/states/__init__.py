"""Pictures of hidden states and gates over sentences."""
