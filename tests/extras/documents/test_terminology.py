"""Translations with the terms of a glossary, of a model that has learnt nothing: terms must not depend on what it
says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from nmt.extras.documents.glossary import Glossary, Term, find_variants
from nmt.extras.documents.terminology import GlossaryTerminology, with_glossary
from tests.translator.test_segmentation import MARKED
from tests.workflows.runs import loaded, records, translated

TEXT = b"ein Hund und eine Katze\n\nzwei drei Hund Hund\ndrei\nHunde\n"


DOG = Glossary((Term("Hund", ("dog",)),))


def holds(text: str, *terms: Sequence[str]) -> bool:
    return None not in find_variants(text, [Term("x", tuple(variants)) for variants in terms])


@pytest.mark.parametrize("arguments", [[], ["--beam", "1"], ["--workers", "2"], ["--batch-tokens", "20"]])
def test_terms_appear_and_other_lines_stay(folder: Path, arguments: list[str]) -> None:
    free = translated(folder, *arguments, text=TEXT).decode().split("\n")
    found = translated(folder, "--glossary", "terms.tsv", *arguments, text=TEXT).decode().split("\n")
    assert len(found) == len(free)
    assert holds(found[0], ["dog", "hound"], ["green cat"])
    assert holds(found[2], ["two"], ["dog", "hound"], ["dog", "hound"])
    assert (found[1], found[3:]) == ("", free[3:])


def test_every_translation_of_a_list_has_the_terms(folder: Path) -> None:
    objects = records(folder, "--glossary", "terms.tsv", "--n-best", "3", "--alignment", text=TEXT)
    assert [each["source"] for each in objects] == TEXT.decode().split("\n")[:-1]
    for found in objects[0]["translations"]:
        assert holds(found["text"], ["dog", "hound"], ["green cat"])
        assert found["alignment"]["target_words"] == found["text"].split()
    texts = [found["text"] for found in objects[0]["translations"]]
    assert len(set(texts)) == len(texts) == 3
    rows = translated(folder, "--glossary", "terms.tsv", "--n-best", "3", "--format", "tsv", text=TEXT).decode()
    assert [row.split("\t")[3] for row in rows.split("\n")[:3]] == texts


def test_terms_go_with_constraints_and_prefixes(folder: Path) -> None:
    (folder / "words").write_text("three\n\none\n\n\n")
    (folder / "prefix").write_text("a\n\n\n\n\n")
    arguments = ["--glossary", "terms.tsv", "--constraints", "words", "--prefix", "prefix"]
    found = translated(folder, *arguments, text=TEXT).decode().split("\n")
    assert found[0].startswith("a")
    assert " three" in f" {found[0]}"
    assert " one" in f" {found[2]}"
    # where no constrained translation is cheap enough, replaced words could remove what is given
    strict = with_glossary(loaded(folder), DOG, max_loss=-100.0)
    sources, given = ["Hund und Katze", "eins Hund"], ["three two", "one"]
    prefixed = strict.translate(sources, prefixes=given)
    constrained = strict.translate(sources, constraints=[[words] for words in given])
    for words, first, second in zip(given, prefixed, constrained, strict=True):
        assert first.text.startswith(words)
        assert f" {words}" in f" {second.text}"
    assert found[4] == translated(folder, text=TEXT).decode().split("\n")[4]


def test_terms_are_found_in_the_pieces_of_a_line(folder: Path) -> None:
    translator = with_glossary(loaded(folder, "search.document=true"), Glossary((Term("hund", ("dog",)),)))
    (found,) = translator.translate(["Der Hund. Die Katze. Hund und hund."])
    assert [source for source, _ in found.parts] == ["Der Hund.", "Die Katze.", "Hund und hund."]
    assert [holds(text, ["dog"], ["dog"]) for _, text in found.parts][2]
    assert holds(found.text, *[["dog"]] * 3)


def test_terms_go_with_markup(folder: Path) -> None:
    plain = translated(folder, "--markup", text=MARKED.encode()).decode().split("\n")
    found = translated(folder, "--markup", "--glossary", "terms.tsv", text=MARKED.encode()).decode().split("\n")
    assert len(found) == len(plain)
    assert holds(found[0].replace("<", " <").replace(">", "> "), ["dog", "hound"])
    assert all(found[0].count(tag) == 1 for tag in ("<b>", "</b>", "<i>", "</i>", "{x}", "&amp;", "3,50"))
    assert found[2:] == plain[2:]


def test_what_the_vocabulary_cannot_spell_is_put_in_by_alignment(folder: Path) -> None:
    translator = with_glossary(loaded(folder), Glossary((Term("Hund", ("日本 dog",)),)))
    found = translator.translate(["Hund und Katze", "Katze"])
    assert holds(found[0].text, ["日本 dog"])
    assert "⁇" not in found[0].text


def test_a_translation_that_has_its_terms_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = loaded(folder)
    free = translator.translate(["Hund und Katze"])[0]
    word = next(each for each in free.text.strip(".").split() if each.isalpha())
    constrained = Mock(return_value={})
    monkeypatch.setattr(GlossaryTerminology, "_constrained", constrained)
    kept = with_glossary(translator, Glossary((Term("Hund", ("nothing", word)),))).translate(["Hund und Katze"])[0]
    assert kept.text == free.text
    assert kept.log_prob == pytest.approx(free.log_prob)
    constrained.assert_not_called()  # no sentence lacks a term


def test_a_constrained_translation_that_costs_too_much_gives_way(folder: Path) -> None:
    """If no loss is allowed, a term replaces the words aligned with it, and the rest remains."""
    translator = loaded(folder)
    source = "eins zwei Hund"
    free = translator.translate([source])[0]
    cheap, placed = (with_glossary(translator, DOG, max_loss=loss).translate([source])[0] for loss in (100.0, -100.0))
    assert holds(cheap.text, ["dog"])
    assert holds(placed.text, ["dog"])
    without = {word for word in placed.text.split() if "dog" not in word}
    assert without <= set(free.text.split())
    score = translator.score(source, placed.text)
    assert (placed.log_prob, placed.score) == pytest.approx((score.log_prob, score.score), abs=1e-3)
    assert placed.tokens == score.tokens[:-1]


def test_a_sentence_does_not_depend_on_its_company(folder: Path) -> None:
    translator = with_glossary(loaded(folder), folder / "terms.tsv")
    sources = ["zwei Hund", " ".join(["Hund Katze"] * 6), "Katze", "eins"]
    together = [each.text for each in translator.translate(sources)]
    assert together == [translator.translate(source).text for source in sources]
