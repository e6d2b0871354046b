"""The comparison of attention mechanisms: systems, budget, training, measuring, report and pictures."""
