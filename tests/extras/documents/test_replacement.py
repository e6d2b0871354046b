"""Terms in place of the words that are aligned with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nmt.alignment.formats import Alignment
from nmt.data.words import text_words
from nmt.extras.documents.glossary import Glossary, Term
from nmt.extras.documents.replacement import with_terms

GLOSSARY = Glossary(
    (Term("Hund", ("hound", "hounds")), Term("Rotes Kreuz", ("Red Cross",)), Term("Katze", ("kitten",)))
)


def aligned(source: str, target: str, weights: dict[tuple[str, str], float]) -> Alignment:
    """An alignment with weights of pairs of words; those of 0.3 and more are links."""
    spans = {text: tuple(text_words(text)) for text in (source, target)}
    sources, targets = (tuple(text[slice(*span)] for span in spans[text]) for text in (source, target))
    weights_JI = np.array([[weights.get((i, j), 0.0) for i in sources] for j in targets])
    links = tuple((i, j) for j, i in np.argwhere(weights_JI >= 0.3).tolist())
    weights_JI = weights_JI.reshape(len(targets), len(sources))
    return Alignment(sources, targets, links, weights_JI, source_spans=spans[source], target_spans=spans[target])


REPLACED = [
    ("Der Hund bellt.", "The dog barks.", {("Hund", "dog"): 0.9}, "The hound barks."),
    ("Hund!", "Dog!", {("Hund", "Dog"): 0.9, ("Hund", "!"): 0.9}, "Hound!"),
    # the article has a link, but far less weight
    ("Der Hund", "the dog", {("Hund", "dog"): 0.9, ("Hund", "the"): 0.5}, "the hound"),
    ("Das Rotes Kreuz hilft", "The ruddy crux helps",
     {("Rotes", "ruddy"): 0.8, ("Kreuz", "crux"): 0.9, ("hilft", "helps"): 0.9}, "The Red Cross helps"),
    ("Hund", "dogs", {("Hund", "dogs"): 0.3}, "hound"),
    ("Hund", "perhaps", {("Hund", "perhaps"): 0.2}, None),  # no link
    ("Hund und Katze", "kitten", {("Hund", "kitten"): 0.9}, None),  # what another term has is not replaced
    ("Hund und Katze", "dog and cat", {("Hund", "dog"): 0.9, ("Katze", "cat"): 0.9}, "hound and kitten"),
    ("Hund", "", {}, None),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "weights", "expected"), REPLACED)
def test_aligned_words_are_replaced(
    source: str, target: str, weights: dict[tuple[str, str], float], expected: str | None
) -> None:
    assert with_terms(target, GLOSSARY.find(source), aligned(source, target, weights)) == expected


def test_of_several_occurrences_those_without_a_term_get_one() -> None:
    source, target = "Hund Katze Hund", "dog cat hounds"
    alignment = replace(aligned(source, target, {}), links=((0, 0), (1, 1), (2, 2)), weights_TS=np.eye(3))
    assert with_terms(target, GLOSSARY.find(source), alignment) == "hound kitten hounds"
