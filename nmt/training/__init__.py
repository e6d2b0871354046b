"""Training: the loop, its objective, optimizer and schedule, checkpoints."""
