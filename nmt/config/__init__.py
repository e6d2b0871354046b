"""YAML configurations: reading with line numbers, validation, explanation."""
