"""Layers that every model shares. They import nothing of attention, models or data."""
