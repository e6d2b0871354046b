"""What a run has come to as one HTML page, with its charts as pictures."""
