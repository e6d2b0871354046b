"""The tables of options that do not go together: they name options that exist, and mean what they say."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from string import Formatter
from typing import Any

import pytest

from nmt import plugins
from nmt.cli import align, average, config, evaluate, links, translate
from nmt.cli.app import build_command
from nmt.cli.conflicts import Excludes, Needs, given_options
from nmt.core.errors import InputError

TABLES = [
    ("align", align.AlignOptions, align.ALIGN_CONFLICTS),
    ("average", average.AverageOptions, average.CONFLICTS),
    ("config", config.ConfigOptions, config.CONFLICTS),
    ("evaluate", evaluate.EvaluateOptions, evaluate.CONFLICTS),
    ("links", links.LinkOptions, links.LINK_CONFLICTS),
    ("translate", translate.TranslateOptions, translate.CONFLICTS),
]


@pytest.mark.parametrize(("command", "options", "conflicts"), TABLES)
def test_rules_and_their_sentences_name_options_that_exist(command: str, options: Any, conflicts: Any) -> None:
    parameters = {str(parameter.name): parameter.opts for parameter in build_command(command).params}
    additions = [addition for _, addition in plugins.options(command)]
    own = {field.name for each in (options, *additions) for field in fields(each)}
    assert set(parameters) - {"help", "quiet", "verbose", "tsv"} == own
    parameters["source_readers"] = ["--source-readers"]
    values = type("Values", (), dict.fromkeys([*parameters, "changes"]))()
    vars(values).update(dict.fromkeys([*parameters, "changes"], "value"))
    for rule in (*conflicts, *(rule for addition in additions for rule in vars(addition).get("conflicts", ()))):
        names = re.findall(r"(\w+)(?:!?=\S+)?", f"{rule.options} {rule.others} {rule.where}")
        assert set(names) <= {*parameters, "changes"}, rule
        for name, option in zip(names, given_options(values, " ".join(names)), strict=True):
            assert name == "changes" or option in ("MODEL", "LINKS", *parameters[name])
        used = {field for _, field, _, _ in Formatter().parse(rule.sentence) if field}
        assert used <= {*parameters, "option", "others"}, rule


@dataclass(frozen=True)
class Options:
    base: int | None = None
    kind: str = "plain"
    files: list[str] | None = None
    input_: str | None = None


GIVEN = [
    (Options(), "base kind files input_", []),
    (Options(base=0, kind="plain", files=[], input_=""), "base kind files input_", ["--base", "--input"]),
    (Options(kind="odd"), "kind=even/odd", ["--kind"]),
    (Options(kind="odd"), "kind=even", []),
    (Options(kind="odd"), "kind!=even", ["--kind"]),
    (Options(kind="odd"), "kind!=even/odd", []),
]


@pytest.mark.parametrize(("options", "conditions", "found"), GIVEN)
def test_an_option_is_given_where_it_differs_from_its_default(options: Options, conditions: str, found: Any) -> None:
    assert given_options(options, conditions) == found


def test_a_broken_rule_is_an_error_with_the_given_options() -> None:
    options = Options(base=1, kind="odd", files=["a"])
    with pytest.raises(InputError, match=r"^--base odd --kind, --files$"):
        Excludes("input_ base", "kind files", "{option} {kind} {others}").check(options)
    with pytest.raises(InputError, match=r"^--base needs it$"):
        Needs("base", "input_", "{option} needs it", where="kind").check(options)
    Needs("base", "input_", "", where="input_").check(options)
    Needs("base", "input_ files", "").check(options)
    Excludes("base", "input_", "").check(options)
    with pytest.raises(InputError, match=r"^nothing to do$"):
        Needs("", "input_", "nothing to do").check(options)
