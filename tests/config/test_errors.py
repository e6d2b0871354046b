"""Every message of a fault against the classes, word for word."""

from __future__ import annotations

import pytest

from nmt.config.yaml_source import Override
from tests.config.shapes import message

BELONGS = "unknown key; it belongs"
CHOICES = "is not a choice; the choices are"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # unknown keys
        ("sede: 3", "2: sede: unknown key; did you mean 'seed'?"),
        (
            "model:\n  encoder:\n    kind: rnn\n\n    layer: 3",
            "6: model.encoder.layer: unknown key; did you mean 'layers'?",
        ),
        ("data:\n  train:\n  - source: x\n  - sauce: y", "5: data.train.1.sauce: unknown key; did you mean 'source'?"),
        (
            "model:\n  extra_encoder: {kind: transformer, cell: gru}",
            "3: model.extra_encoder.cell: unknown key for kind 'transformer'; it belongs to kind 'rnn'",
        ),
        ("weight: 2", f"2: weight: {BELONGS} at 'data.train.0.weight'"),
        ("model: {heads: 2}", f"2: model.heads: {BELONGS} at 'model.encoder.heads' or 'model.extra_encoder.heads'"),
        # missing keys
        ("data:\n  train:\n  - weight: 2", "4: data.train.0.source: missing; add this key"),
        ("model:\n  encoder:\n    layers: 2", "3: model.encoder.kind: missing; add one of rnn, transformer"),
        ("data:\n  languages: [de]", "3: data.languages.1: missing; add this entry"),
        # choices
        (
            "model:\n  encoder:\n    kind: rn",
            "4: model.encoder.kind: text 'rn' is not a choice; did you mean 'rnn'? the choices are rnn, transformer",
        ),
        ("model: {encoder: {kind: }}", f"2: model.encoder.kind: nothing {CHOICES} rnn, transformer"),
        (
            "model: {extra_encoder: {kind: rnn, cell: elman}}",
            f"2: model.extra_encoder.cell: text 'elman' {CHOICES} gru, lstm",
        ),
        # types
        ("seed: '3'", "2: seed: expected a whole number, found text '3'; remove the quotes"),
        ("seed: 3.0", "2: seed: expected a whole number, found 3.0"),
        ("seed: true", "2: seed: expected a whole number, found true"),
        ("seed: .nan", "2: seed: expected a whole number, found nan"),
        ("limit: many", "2: limit: expected a whole number or 'auto', found text 'many'"),
        ("model:", "2: model: expected keys with values, found nothing"),
        ("model: {encoder: rnn}", "2: model.encoder: expected keys with values, found text 'rnn'"),
        (
            "model: {encoder: {kind: rnn, bidirectional: yes}}",
            "2: model.encoder.bidirectional: expected true or false, found text 'yes'",
        ),
        ("data: {train: x}", "2: data.train: expected a list, found text 'x'"),
        ("data: {train: {source: x}}", "2: data.train: expected a list, found keys with values"),
        ("data: {lengths: {de: x}}", "2: data.lengths.de: expected a whole number, found text 'x'"),
        ("data: {lengths: 3}", "2: data.lengths: expected keys with values, found 3"),
        ("data: {train: [{source: x, weight: .inf}]}", "2: data.train.0.weight: expected a finite number, found inf"),
        ("data: {train: [{source: 3}]}", "2: data.train.0.source: expected text, found 3; put it in quotes"),
        # bounds
        ("data: {train: [{source: x, weight: 0}]}", "2: data.train.0.weight: expected more than 0, found 0"),
        ("model: {encoder: {kind: rnn, layers: 0}}", "2: model.encoder.layers: expected at least 1, found 0"),
        ("model: {encoder: {kind: rnn, dropout: 1.0}}", "2: model.encoder.dropout: expected less than 1, found 1.0"),
        ("data: {languages: [a, b, c]}", "2: data.languages: expected a list of at most 2, found a list of 3"),
        ("data: {prefix: ''}", "2: data.prefix: expected text of at least 1 characters, found text ''"),
        ("data: {prefix: x}", "2: data.prefix: expected text like ^p, found text 'x'"),
        # the classes' own checks
        ("seed: 13", "2: seed: 13 brings bad luck, take another"),
    ],
)
def test_faults_below_a_good_line(text: str, expected: str) -> None:
    assert message(f"run: a\n{text}") == f"c.yaml:{expected}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# c\nrunn: a", "2: runn: unknown key; did you mean 'run'?"),
        ("seed: 3", "1: run: missing; add this key"),
        ("run: 3", "1: run: expected text, found 3; put it in quotes"),
        ("\nrun: bad", "2: a run may not be called bad"),
    ],
)
def test_faults_of_the_first_line(text: str, expected: str) -> None:
    assert message(text) == f"c.yaml:{expected}"


def test_several_faults_are_in_one_message_with_unknown_keys_first() -> None:
    assert message("run: a\nmodel:\n  zzz: 1\nqqq: 2") == (
        "c.yaml:3: model.zzz: unknown key; the keys here are encoder, extra_encoder, size; "
        "c.yaml:4: qqq: unknown key; the keys here are run, seed, limit, model, data"
    )
    assert message("run: a\nseed: x\nlimit: 1.5\nsize: 3") == (
        f"c.yaml:4: size: {BELONGS} at 'model.size'; c.yaml:2: seed: expected a whole number, found text 'x'; "
        "c.yaml:3: limit: expected a whole number or 'auto', found 1.5"
    )


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("sede=3", "sede: unknown key; did you mean 'seed'?"),
        ("model.sice=3", "model.sice: unknown key; did you mean 'size'?"),
        ("modl.size=3", "modl: unknown key; did you mean 'model'?"),
        ("seed=x", "seed: expected a whole number, found text 'x'"),
        ("data.train.0.wait=3", "data.train.0.wait: unknown key; did you mean 'weight'?"),
        ("model.encoder={kind: rnn, cel: gru}", "model.encoder.cel: unknown key; did you mean 'cell'?"),
    ],
)
def test_errors_of_an_override_name_the_override(override: str, expected: str) -> None:
    assert message("run: a\ndata:\n  train:\n  - source: x\n", override) == f"--set {override}: {expected}"


def test_a_fault_of_an_option_is_told_in_the_words_of_the_option() -> None:
    assert message("run: a", Override("seed=x", "--seed x")) == "--seed x: expected a whole number, found text 'x'"
    assert message("run: a", Override("seed=13", "--seed 13")) == "--seed 13: 13 brings bad luck, take another"


def test_a_fault_in_the_file_keeps_its_line_under_overrides() -> None:
    assert message("run: a\nseed: x", "model.size=3") == "c.yaml:2: seed: expected a whole number, found text 'x'"


def test_replacing_a_section_forgets_the_lines_of_what_it_held() -> None:
    text = "run: a\nmodel:\n  encoder:\n    kind: rnn\n    layers: 1\n"
    override = "model={encoder: {kind: rnn, layers: x}}"
    assert message(text, override) == f"--set {override}: model.encoder.layers: expected a whole number, found text 'x'"
