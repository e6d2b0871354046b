"""A report of runs as one HTML page, with its charts as pictures."""
