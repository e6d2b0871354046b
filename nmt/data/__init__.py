"""From text to batches: corpora, filters, subwords, the memory-mapped token store, bucketed batches. No torch here."""
