"""Configurations in YAML: read with line numbers, checked, explained."""
