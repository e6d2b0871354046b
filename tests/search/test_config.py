"""The search section: what goes together, in the words of the file, the option or the argument."""

from __future__ import annotations

import pytest

from nmt.config.structure import parse_document, validate
from nmt.config.yaml_source import Override
from nmt.core.errors import InputError
from nmt.search.config import SearchConfig


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_best: 6", "n_best: 6 translations need as many beams, not 5; set beam to 6"),
        ("{n_best: 9, consensus: {samples: 8}}", "n_best: 9 translations need at least as many consensus.samples"),
        ("groups: 2", "groups: 5 beams cannot be shared out equally among 2 groups"),
        ("{min_length: 4, max_length: 3}", "min_length: 4 is more than max_length, 3"),
        ("shortlist: true", "shortlist: unknown key"),
    ],
)
def test_what_does_not_go_together_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^c.yaml:1: {message}"):
        validate(SearchConfig, parse_document(text, "c.yaml"))


@pytest.mark.parametrize(
    "text",
    [
        "n_best: 5",
        "{n_best: 6, sampling: {}}",
        "{n_best: 8, consensus: {samples: 8}}",
        "{beam: 6, groups: 2}",
        "{min_length: 3, max_length: 3}",
        "shortlist: false",
    ],
)
def test_what_goes_together_is_accepted(text: str) -> None:
    validate(SearchConfig, parse_document(text, "c.yaml"))


@pytest.mark.parametrize(
    ("mark", "advice"), [("--n-best 30", "add --beam 30"), ("n_best=30", "add beam=30")], ids=["option", "argument"]
)
def test_advice_is_in_the_words_of_the_option_or_argument(mark: str, advice: str) -> None:
    with pytest.raises(InputError) as caught:
        validate(SearchConfig, parse_document("{}", "c.yaml", [Override("n_best=30", mark)]))
    assert str(caught.value) == f"{mark}: 30 translations need as many beams, not 5; {advice}"
