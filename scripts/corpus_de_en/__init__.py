"""A hand-written German-English grammar that generates a small parallel corpus.

``lexicon`` reads the word tables in data/de-en-lexicon, ``morphology`` the inflection rules, ``tokens`` the words with
their alignment anchors, ``phrases`` noun phrases and adverbials, ``clauses`` the realisation of
one clause in both languages, ``grammar`` the sentence patterns and ``corpus`` the splits.
"""
