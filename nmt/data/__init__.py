"""From text to batches: corpora, filters, subwords, the memory-mapped token store, bucketed batches. It does not import
torch."""
