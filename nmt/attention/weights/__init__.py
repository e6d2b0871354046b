"""Ways to turn scores into weights, one file each."""
