"""An attention score, a metric and a command for nmt."""
