"""The tables of a corpus."""

from __future__ import annotations

from pathlib import Path

from nmt.extras.documents.glossary import read_glossary
from nmt.extras.pages.corpus_reports import TermsOptions
from tests.extras.pages.samples import aligned


def test_terms_are_a_glossary_of_what_is_frequent_and_sure(tmp_path: Path) -> None:
    texts = [
        *[("Hund", "dog", ((0, 0),))] * 3,
        *[("Hund", "hound", ((0, 0),))] * 2,
        ("Hund", "cat", ((0, 0),)),  # once
        *[("Maus", word, ((0, 0),)) for word in ["mouse"] * 8 + ["rodent"] * 2],  # a fifth: just enough
        *[("l'eau", "water", ((0, 0),))] * 2,
        *[("l\u2019eau", "Wasser", ((0, 0),))] * 2,  # of the same words to a glossary
        *[(".", "!", ((0, 0),))] * 9,
        *[("#a x|y", "b c", ((0, 0), (1, 1)))] * 9,
        *[("steht hier auf", "stands here", ((0, 0), (2, 0), (1, 1)))] * 2,  # with a gap
        *[("der", word, ((0, 0),)) for word in ("the", "that", "who", "of", "it", "one") for _ in range(2)],
        *[("die", "she", ((0, 0),))] * 2,
        *[("die", "", ())] * 3,  # mostly without a translation
    ]
    with TermsOptions(terms := tmp_path / "terms.jsonl", min_count=2).open([], None) as report:
        for number, text in enumerate(texts, 1):
            report.add([text[0]], [text[1]], [aligned(*text)], number)
    assert terms.read_text().splitlines() == [  # a glossary, whatever its name
        "# source\ttarget", "hier\there", "Hund\tdog|hound", "l'eau\twater", "Maus\tmouse|rodent"
    ]  # fmt: skip
    assert len(read_glossary(terms).terms) == 4
