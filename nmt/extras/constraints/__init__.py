"""Translations that contain given phrases."""
