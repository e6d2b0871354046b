"""The model section: combinations that make no sense are errors of one line that say why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.core.structure import dump, parse_document, validate
from nmt.models.config import ModelConfig

ROOT = Path(__file__).resolve().parents[2]


def read(text: str) -> ModelConfig:
    return validate(ModelConfig, parse_document(text, "config.yaml"))


def fault(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("config.yaml")
    return message


FAULTS = {
    "no attention, but weights": (
        "attention: {score: none, weights: hard}",
        "score: none leaves weights: hard nothing to weigh; leave weights out",
    ),
    "no attention, but a query": (
        "attention: {score: none}\ndecoder: {query: previous}",
        "decoder.query: previous has no attention to ask with attention.score: none; leave it out",
    ),
    "attention and a context": (
        "attention: {score: dot}\ncontext: {kind: every_step}",
        (
            "context: every_step is for a decoder without attention; leave it out, or set attention.score: none "
            "instead of dot"
        ),
    ),
    "attention by default and a context": (
        "context: {kind: first_step}",
        (
            "context: first_step is for a decoder without attention; leave it out, or set attention.score: none "
            "instead of additive"
        ),
    ),
    "an initial state of another width": (
        "attention: {score: none}\ncontext: {kind: initial_state}\nencoder: {size: 30}\ndecoder: {size: 50}",
        (
            "context: initial_state needs decoder.size (50) to equal the width of an encoder state (60); change a "
            "size, or use projected_initial_state"
        ),
    ),
    "an initial state of another width, one direction": (
        (
            "attention: {score: none}\ncontext: {kind: initial_state}\nencoder: {size: 30, bidirectional: false}\n"
            "decoder: {size: 60}"
        ),
        "context: initial_state needs decoder.size (60) to equal the width of an encoder state (30)",
    ),
    "an exact sum with input feeding": (
        "attention: {weights: {kind: hard, training: marginal}}",
        (
            "attention.weights: hard sums over all positions of a step, so no later step may depend on it: set "
            "decoder.query: current and decoder.input_feeding: false, or training: reinforce"
        ),
    ),
    "an exact sum with the previous query": (
        "attention: {weights: {kind: hard, training: marginal}}\ndecoder: {query: previous, input_feeding: false}",
        "attention.weights: hard sums over all positions of a step",
    ),
    "a residual encoder of one layer": (
        "encoder: {residual: true}",
        "residual: true adds what a layer reads to what it gives, from the second layer on; set layers",
    ),
    "a residual decoder of one layer": (
        "decoder: {residual: true, layers: 1}",
        "residual: true adds what a layer reads to what it gives, from the second layer on; set layers",
    ),
    "a tied output of another width": (
        "embedding: {tie: output, size: 8}\ndecoder: {readout_size: 7}",
        (
            "embedding.tie: output needs decoder.readout_size (7) to equal embedding.size (8): change one, or leave "
            "readout_size out"
        ),
    ),
}


@pytest.mark.parametrize(("text", "why"), FAULTS.values(), ids=FAULTS)
def test_a_combination_that_makes_no_sense_says_why(text: str, why: str) -> None:
    assert why in fault(text)


def test_a_fault_names_the_section_that_it_is_in() -> None:
    assert fault("decoder:\n  cell: gru\n  residual: true\n").startswith("config.yaml:1: decoder: residual: true adds")
    assert fault("attention:\n  score: none\n  weights: hard\n").startswith("config.yaml:1: attention: score: none")


SOUND = {
    "an initial state of the encoder's width": (
        "attention: {score: none}\ncontext: {kind: initial_state}\nencoder: {size: 30}\ndecoder: {size: 60}"
    ),
    "an initial state of one direction's width": (
        "attention: {score: none}\ncontext: {kind: initial_state}\nencoder: {size: 30, bidirectional: false}\n"
        "decoder: {size: 30}"
    ),
    "no attention and no more said": "attention: {score: none}",
    "no attention and its query left as it was": "attention: {score: none}\ndecoder: {query: current}",
    "an exact sum": "attention: {weights: {kind: hard, training: marginal}}\ndecoder: {input_feeding: false}",
    "draws with input feeding": "attention: {weights: hard}\ndecoder: {query: previous}",
    "residual layers": "encoder: {layers: 2, residual: true}\ndecoder: {layers: 3, residual: true}",
    "a tied output": "embedding: {tie: output, size: 8}\ndecoder: {size: 7}",
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_a_combination_that_makes_sense_is_taken_and_written_as_it_is(text: str) -> None:
    config = read(text)
    assert read(dump(config)) == config


def test_a_context_is_set_by_name_or_with_its_settings() -> None:
    by_name = read("attention: {score: none}\ncontext: every_step")
    assert by_name == read("attention: {score: none}\ncontext: {kind: every_step, summary: last}")


def test_an_unknown_cell_or_context_lists_the_choices() -> None:
    for cell in ("elman", "gru", "lstm"):
        assert cell in fault("decoder: {cell: tanh}")
    message = fault("attention: {score: none}\ncontext: {kind: every}")
    for kind in ("every_step", "first_step", "initial_state", "projected_initial_state"):
        assert kind in message


def test_the_command_line_suggests_the_score_that_was_meant(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("1 2 3\n", encoding="utf-8")
    (tmp_path / "config.yaml").write_text(
        "run: run\ndata: {train: {source: a, target: b}, valid: {source: a, target: b}}\n", encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "nmt", "train", "config.yaml", "--set", "model.attention.score=consine"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: --set model.attention.score=consine: ")
    assert "text 'consine' is not a choice; did you mean 'cosine'?" in line
    assert "the choices are none, additive, concat, cosine" in line
    assert not (tmp_path / "run").exists()
