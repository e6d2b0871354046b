"""Translations, and lists of results, as HTML in a notebook."""

from __future__ import annotations

from nmt.translator.translation import MOST_SHOWN, Results, Translation
from nmt.translator.translator import Translator
from tests.core.test_notebook import HARD, Page, page_of, seen


def test_a_translation_shows_text_and_score() -> None:
    for text in HARD:
        page = page_of(Translation(text, -0.51234, -1.0))
        assert [each for tag, _, each in page.cells if tag == "td"] == [*seen([text]), "-0.5123"]


def test_a_list_shows_the_first_results() -> None:
    page = page_of(Results(Translation(f"t{number}", 0.0, 0.0) for number in range(MOST_SHOWN + 2)))
    assert [tag for tag, _ in page.tags].count("table") == MOST_SHOWN
    assert "t19" in page.text
    assert page.text.endswith("… and 2 more")
    assert Results[Translation]()._repr_html_() == ""


def test_results_of_a_model_are_lists_that_a_notebook_shows(translator: Translator) -> None:
    pairs = ["eins zwei.", "<i>Hund</i>"], ["one two.", "dog & cat"]
    for results in (translator.translate(pairs[0]), translator.align(*pairs), translator.score(*pairs)):
        assert isinstance(results, list)
        assert results == list(results)
        Page(results._repr_html_())
    alignment = translator.align(*pairs)[1]
    assert page_of(alignment).heads() == ["<i>Hund</i>", "dog", "&", "cat"]
