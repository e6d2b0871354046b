"""The file of a glossary, where its terms occur, and how many of them a translation has."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.evaluation.report import Evaluation, TermRecall
from nmt.extras.documents.glossary import Glossary, Term, find_variants, read_glossary, term_recall


def glossary(**terms: str) -> Glossary:
    return Glossary(tuple(Term(source.replace("_", " "), tuple(of.split("|"))) for source, of in terms.items()))


def found(terms: Glossary, text: str) -> list[tuple[str, str]]:
    return [(each.term.source, text[slice(*each.span)]) for each in terms.find(text)]


def test_a_file_has_a_term_a_line(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    lines = "# animals\r\nHund\tdog | hound|dog\r\n\n  \nRotes Kreuz\t Red Cross\nHund\thound|dog\nhund\tx"
    path.write_bytes(f"\ufeff{lines}".encode())
    expected = Term("Hund", ("dog", "hound")), Term("Rotes Kreuz", ("Red Cross",)), Term("hund", ("x",))
    assert read_glossary(path).terms == expected


MALFORMED = [
    (b"Katze cat", "has no TAB; write a source term, one TAB and a target term"),
    (b"Katze\tcat\tkitten", "has 2 TABs; write"),
    (b" \tcat", "has no source term; write one before the TAB, or leave the line out"),
    (b"Katze\t ", "has no target term; write"),
    (b"Katze\tcat||kitten", "has an empty variant; write"),
    (b"Katze\t|", "has an empty variant; write"),
    (b"Katze\tcat|" + b"x" * 501, "has a term of more than 500 characters; leave it out"),
    (b"K\xe4tzchen\tkitten", "is not UTF-8; save the file as UTF-8"),
    (b"Hund\thound", "'Hund' has other targets than in line 1; put all in one line, with | between"),
    (b"Rotes  Kreuz\tcross", "'Rotes  Kreuz' has other targets than in line 2"),
]


@pytest.mark.parametrize(("line", "message"), MALFORMED)
def test_a_malformed_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes(b"Hund\tdog\nRotes Kreuz\tRed Cross\n" + line + b"\n")
    with pytest.raises(InputError) as error:
        read_glossary(path)
    assert str(error.value).startswith(f"{path}:3: {message}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--glossary .*none.*: no such file"):
        read_glossary(tmp_path / "none")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_glossary(tmp_path)


def test_a_glossary_without_terms_is_warned_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "terms.tsv").write_text("# nothing yet\n")
    assert read_glossary(tmp_path / "terms.tsv").terms == ()
    assert "terms.tsv: has no terms" in capsys.readouterr().err


BOUNDARIES = glossary(Hund="dog", eau="water", Mail="mail", Dr="doctor")
LONGEST = glossary(
    rotes="red", rotes_kreuz="red cross", kreuz="cross", das_rote="the red", rote_kreuz_hilft="x", hilft="helps"
)
CAPITALS = glossary(US="U.S.", us="uns", Bär="bear")


OCCURRENCES = [
    # at word boundaries
    (BOUNDARIES, "Hunde, Hund! Schoßhund Hund.", ["Hund", "Hund"]),
    (BOUNDARIES, "l'eau, l’eau", ["eau", "eau"]),
    (BOUNDARIES, "E-Mail Mails Dr.", ["Dr"]),
    (BOUNDARIES, "", []),
    # the longest from the left
    (LONGEST, "rotes \u00a0Kreuz, Kreuz", [("rotes kreuz", "rotes \u00a0Kreuz"), ("kreuz", "Kreuz")]),
    (LONGEST, "das rote Kreuz hilft", ["das rote", ("kreuz", "Kreuz"), "hilft"]),
    # a term with a capital stands for itself, and one without for any case
    (CAPITALS, "US us Us", ["US", "us", ("us", "Us")]),
    (CAPITALS, "BÄR bär Bär Ba\u0308r", ["Bär", ("Bär", "Ba\u0308r")]),
]


@pytest.mark.parametrize(("terms", "text", "expected"), OCCURRENCES)
def test_where_terms_occur(terms: Glossary, text: str, expected: list[str | tuple[str, str]]) -> None:
    assert found(terms, text) == [(each, each) if isinstance(each, str) else each for each in expected]


PLACES = [
    ("the dog and the dog", ["dog", "dog", None]),
    ("Hounds, dog's", ["dog", "Hounds", None]),
    ("dogs and Red  Cross", [None, None, "Red  Cross"]),
    ("red cross dog", ["dog", None, None]),
]


@pytest.mark.parametrize(("translation", "expected"), PLACES)
def test_each_occurrence_needs_a_place_of_its_own(translation: str, expected: list[str | None]) -> None:
    dog, cross = Term("Hund", ("dog", "hounds")), Term("Kreuz", ("Red Cross",))
    spans = find_variants(translation, [dog, dog, cross])
    texts = [None if span is None else translation[slice(*span)] for span in spans]
    assert sorted(map(str, texts)) == sorted(map(str, expected))


def most_standing(words: tuple[str, ...], terms: Sequence[Term]) -> int:
    """The number of terms that stand in words, each in its own place, by trying all ways."""
    if not terms:
        return 0
    first, *others = terms
    counts = [most_standing(words, others)]
    for target, at in itertools.product(map(str.split, first.targets), range(len(words))):
        if [*words[at : at + len(target)]] == target:
            counts.append(1 + most_standing((*words[:at], "-", *words[at + len(target) :]), others))
    return max(counts)


def test_of_all_ways_to_give_terms_a_place_one_with_the_most_is_found() -> None:
    terms = [Term("a", ("x y", "x")), Term("b", ("y",)), Term("c", ("x",)), Term("d", ("y x",)), Term("c", ("x",))]
    for size in range(1, 5):
        for words in itertools.product("xyz", repeat=size):
            spans = find_variants(" ".join(words), terms)
            assert sum(span is not None for span in spans) == most_standing(words, terms), words


def test_recall_counts_at_most_as_many_as_occur() -> None:
    terms = glossary(hund="dog|dogs", katze="cat")
    sources = ["Hund und Hund", "Katze", "eine Katze", "Maus"]
    recall = term_recall(terms, sources, ["dog dogs dog", "a dog", "Cat!", "dog"])
    assert recall == TermRecall(3, 4)
    assert recall.line() == "terms 75.0 % (3 of 4)"
    assert TermRecall(0, 0).line() == "terms (0 of 0)"
    evaluation = Evaluation((), terms=recall)
    assert evaluation.lines() == [recall.line()]
    assert evaluation.tree() == {"terms": {"recall": 75.0, "found": 3, "total": 4}}
