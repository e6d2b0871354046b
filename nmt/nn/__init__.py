"""Layers that every model shares. They import nothing from attention, models or data."""
