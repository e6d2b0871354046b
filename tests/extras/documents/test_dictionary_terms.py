"""Entries of a dictionary in the place of what a model cannot know."""

from __future__ import annotations

from pathlib import Path

import pytest

import nmt
from nmt.core.errors import InputError
from nmt.extras.documents.dictionary_terms import DictionaryTerms
from tests.workflows.runs import refused, translated

COUNTS = [{"hund": 5, "kiefer": 4}, {"pine": 3, "jaw": 1, "tree": 9}]
SENSES = {
    "hund": ["cat"],
    "kiefer": ["jaw", "pine tree", "pine"],
    "rote": ["red"],
    "rot": ["red"],
    "kieferorthopäde": ["x"],
    "kontaktende": ["dip"],
    "kontakte": ["contacts"],
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Der Hund unter der Kiefer.", {"Kiefer": ("pine", "jaw", "pine tree")}),  # hund is not rare
        ("Kiefern Kieferns", {word: ("pine", "jaw", "pine tree", word) for word in ("Kiefern", "Kieferns")}),
        ("Kief", {"Kief": ("pine", "jaw", "pine tree", "Kief")}),  # up to two letters are missing
        ("Kontakten", {"Kontakten": ("contacts", "Kontakten")}),  # and not Kontaktende
        ("rotes", {"rotes": ("red", "rotes")}),
        ("rate Kie 12 Kiefernwald", {}),  # too few letters in common, or too many others
        ("kiefer@wald.de www.kiefer.de", {}),
    ],
)
def test_rare_words_have_the_translations_of_the_nearest_entry(text: str, found: dict[str, tuple[str, ...]]) -> None:
    occurrences = DictionaryTerms(SENSES, COUNTS).find(text)
    assert {text[slice(*each.span)]: each.term.targets for each in occurrences} == found


def test_an_entry_is_in_the_translation_if_its_word_is_rare(folder: Path) -> None:
    (folder / "de-en").write_text("Regen {m} :: wet rain; rain\nHund {m} :: hound | Hunde {pl} :: hounds\n")
    text = b"Regen und Hund\nHund\nRegens\n"
    free, found = (
        translated(folder, *given, text=text).decode().split("\n") for given in ([], ["--dictionary", "de-en"])
    )
    assert [line.lower().split().count("wet") for line in found] == [1, 0, 1, 0]
    assert "hound" not in " ".join(found)
    assert found[1] == free[1]
    (folder / "en-de.tsv").write_text("dog\tHund\nand\tund\nwet rain\tRegen\n")  # is turned around
    translator = nmt.load(folder / "run", dictionary=folder / "en-de.tsv", device="cpu", precision="float32")
    assert "wet rain" in translator.translate("zwei Regen").text.lower()
    with pytest.raises(
        InputError, match="^--dictionary: cannot be had together with --glossary; leave one of them out$"
    ):
        nmt.load(folder / "run", dictionary=folder / "en-de.tsv", glossary=folder / "terms.tsv")


def test_a_dictionary_needs_the_training_corpus(folder: Path, tmp_path: Path) -> None:
    (folder / "de-en.tsv").write_text("Regen\train\n")
    (folder / "run" / "prepared").rename(tmp_path / "prepared")
    try:
        said = refused(folder, "--dictionary", "de-en.tsv")
        assert said.startswith("--dictionary: counts the words of the training corpus: ")
        assert "run/prepared" in said
    finally:
        (tmp_path / "prepared").rename(folder / "run" / "prepared")
    assert "--glossary" in refused(folder, "--glossary", "terms.tsv", "--dictionary", "de-en.tsv")
    assert "nothing.tsv" in refused(folder, "--dictionary", "nothing.tsv")
