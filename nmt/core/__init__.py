"""Foundations: records, errors, files, lines, log, devices and seeds."""
