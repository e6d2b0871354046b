"""The parser of YAML and overrides: plain words, places of faults, and exact round trips."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.structure import load_document, validate
from nmt.config.yaml_source import Override, parse_document, write
from nmt.core.errors import InputError
from tests.config.shapes import Corpus, Experiment, Rnn, message, read


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-3", 1e-3),
        ("1E3", 1000.0),
        ("-.5", -0.5),
        ("1_000", 1000),
        ("010", 10),
        (".inf", float("inf")),
        ("-.Inf", float("-inf")),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("'3'", "3"),
        *((text, text) for text in ("no", "on", "12:30", "2020-01-01", "0x10", "1_", "${HOME:-here}/x", "=")),
    ],
)
def test_plain_words_mean_what_yaml_1_2_says(written: str, value: Any) -> None:
    found = parse_document(f"key: {written}", "c.yaml").tree["key"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["no", "null", "1", ">>fra<<", "[a]", "'", "# x", " a ", "\n"])
def test_the_text_of_an_option_is_not_yaml(text: str) -> None:
    change = Override(f"search.to={text}", f"--to {text}", is_text=True)
    for each in (change, pickle.loads(pickle.dumps(change))):
        assert parse_document("{a: 1}", "c.yaml", [each]).tree["search"]["to"] == text
    assert parse_document("a: 1", "c.yaml", [Override("a=1e3", "--a 1e3")]).tree["a"] == 1000.0


def test_an_alias_stands_for_its_value() -> None:
    experiment = read("run: a\nmodel:\n  encoder: &e {kind: rnn, layers: 3}\n  extra_encoder: *e\n")
    assert experiment.model.extra_encoder == Rnn(layers=3)


def test_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"\xef\xbb\xbfrun: a\r\nseed: 3\r\n")
    assert validate(Experiment, load_document(path)) == Experiment(run="a", seed=3)


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("seed=3", "run: a\nseed: 3"),
        (" seed = 3 ", "run: a\nseed: 3"),
        ("run=x=y", "run: x=y"),
        ("model.size=5", "run: a\nmodel: {size: 5}"),
        ("model.encoder={kind: rnn, dropout: 1e-3}", "run: a\nmodel: {encoder: {kind: rnn, dropout: 0.001}}"),
        ("model.encoder.kind=rnn", "run: a\nmodel: {encoder: {kind: rnn}}"),
        ("data.train=[{source: f}]", "run: a\ndata: {train: [{source: f}]}"),
        ("limit=", "run: a"),
        ("limit=auto", "run: a\nlimit: auto"),
    ],
)
def test_an_override_is_as_if_written_in_the_file(override: str, text: str) -> None:
    assert read("run: a", override) == read(text)


def test_overrides_reach_into_lists_and_the_last_one_wins() -> None:
    text = "run: a\ndata:\n  train:\n    - source: x\n    - source: y\n"
    experiment = read(text, "data.train.1.source=w", "data.train.1.source=z", "data.train.0.weight=3")
    assert experiment.data.train == (Corpus(source=Path("x"), weight=3.0), Corpus(source=Path("z")))


def test_a_section_without_entries_can_be_filled() -> None:
    assert read("run: a\nmodel:\n", "model.size=4").model.size == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run: a\n\tseed: 3", "2: not valid YAML: indented with a tab; use spaces"),
        ("run: a\n---\nrun: b", "2: not valid YAML: a second document starts here; a configuration is one"),
        ('run: a\nx: "\\ud800"', "2: an escape in this text is half of a character (a lone surrogate)"),
        ("run: a\nx: \x00", "2: the character U+0000 is not allowed in YAML"),
        ("run: a\n? [b]\n: c", "2: a key must be a plain word"),
        ("run: a\nseed: 1\nrun: b", "3: run: written twice, first on line 1; keep one of them"),
        ("run: a\nmodel:\n  size: 1\n  size: 1", "4: model.size: written twice, first on line 3; keep one of them"),
        *((text, " is empty; a configuration needs at least one 'key: value' line") for text in ("", "# a comment\n")),
        ("- a\n- b", "1: expected 'key: value' lines, found a list of 2"),
        ("\njust text", "2: expected 'key: value' lines, found text 'just text'"),
        ("run: a: b", "1: not valid YAML: mapping values are not allowed here"),
        ("run: [a", "1: not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ('run: "\\UFFFFFFFF"', "1: not valid YAML: an escape that is not a character"),
        ("run: " + "[" * 3000, "1: nested too deeply"),
        ("run: &a [*a]", "1: an alias may not stand for something that contains it"),
        ("run: *a", "1: not valid YAML: found undefined alias 'a'"),
        (
            "run: !!python/name:os.system ''",
            "1: the tag tag:yaml.org,2002:python/name:os.system is not supported; write plain values",
        ),
        ("run: !!set {a}", "1: the tag tag:yaml.org,2002:set is not supported; write plain values"),
        ("run: !!int x", "1: x is not a valid int"),
    ],
)
def test_errors_of_a_file(text: str, expected: str) -> None:
    assert message(text) == f"c.yaml:{expected}"


DOTTED = "expected dotted.key=value, for example model.encoder.layers=2"
ONE = "data.train is a list of 1 entry, and has no"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        *((override, DOTTED) for override in ("seed", "=3", "a..b=3")),
        ("seed=[1", "not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("run.name=x", "run is text 'a', so it has no key 'name'"),
        *((f"data.train.{key}.source=x", f"{ONE} '{key}'; count from 0 to 0") for key in ("1", "-1", "9999999999")),
        ("data.train.source=x", f"{ONE} 'source'; count from 0 to 0"),
    ],
)
def test_errors_of_an_override_name_the_override(override: str, expected: str) -> None:
    assert message("run: a\ndata:\n  train:\n  - source: x\n", override) == f"--set {override}: {expected}"


def test_aliases_of_aliases_do_not_fill_the_memory() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join(['*' + before] * 10)}]")
    assert "more than 100,000 entries" in message("\n".join(lines))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"run: a\nx: \xff\n")
    for path, expected in (
        (tmp_path / "gone", ": no such file"),
        (tmp_path / "latin", ":2: not UTF-8 text (byte 0xff)"),
        (tmp_path, ": is a folder, but a YAML file is needed"),
    ):
        with pytest.raises(InputError) as caught:
            load_document(path)
        assert str(caught.value) == f"{path}{expected}"


WORDS = ["no", "1e-3", "1_000", "010", "~", "", " x", "a: b", "- a", "#", "\u2028", "\x85", "\ufeff", "1:30"]
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.sampled_from(WORDS)
)
TREES = st.dictionaries(
    st.text(),
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)),
    min_size=1,
    max_size=4,
)


@given(TREES)
def test_what_is_written_reads_back_the_same(tree: dict[str, Any]) -> None:
    found = parse_document(write(tree), "c.yaml").tree
    assert found == tree
    assert repr(found) == repr(tree)  # also the types, the order of keys, and the sign of zero
