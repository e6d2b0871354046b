"""Trained models as they are loaded: their weights, what they were trained on, and the pairs that they read."""

from __future__ import annotations

import json
import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from nmt.alignment.directions import join
from nmt.core.errors import InputError
from nmt.data.config import SubwordsConfig
from nmt.data.segments import SourceLengths
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.vocabulary import PAD
from nmt.training.run_directory import read_lengths
from nmt.translator.loading import load_trained
from nmt.translator.source_language import write_counts
from nmt.translator.translator import Translator
from tests.workflows.runs import edit_state, loaded


def test_a_checkpoint_keeps_the_bias_of_suppressed_tokens(translator: Translator) -> None:
    weights = load_file(translator.trained.checkpoint / "model.safetensors")
    assert weights["output.bias_V"].isfinite().all()
    assert translator.trained.model.output.bias_V[PAD] == -torch.inf


def test_weights_are_read_once_when_the_model_is_first_used(trained: Path) -> None:
    begun = list[str]()
    model = load_trained(trained / "run", device="cpu", precision="float32", before_use=lambda: begun.append("now"))
    assert begun == []
    with ThreadPoolExecutor(4) as threads:
        first, *others = threads.map(lambda _: model.to(None).model, range(4))
    assert begun == ["now"]
    assert all(each is first for each in others)
    eager = load_trained(trained / "run", device="cpu", precision="float32")
    assert model.compute == eager.compute
    assert all(map(torch.equal, first.parameters(), eager.model.parameters()))


def test_the_lengths_of_training_are_noted_in_the_run(trained: Path, tmp_path: Path) -> None:
    report = json.loads((trained / "run" / "prepared" / "report.json").read_text())["source"]["lengths"]
    lengths = SourceLengths(report["99%"], report["most"], several=0.0, letterless=0.0)
    assert read_lengths(trained / "run") == lengths
    assert loaded(trained).trained.lengths == lengths
    assert read_lengths(tmp_path) is None
    for damaged in ("{}", '{"usual": 1, "longest": 2, "several": 1.5}', '{"usual": 1, "longest": 2, "letterless": ""}'):
        (tmp_path / "lengths.json").write_text(damaged)
        with pytest.raises(InputError, match="lengths.json: damaged; delete it"):
            read_lengths(tmp_path)
    (tmp_path / "lengths.json").write_text('{"usual": 1, "longest": 2}')  # as earlier versions wrote it
    assert read_lengths(tmp_path) == SourceLengths(1, 2)


def test_a_run_without_noted_lengths_has_those_of_its_filter(trained: Path, tmp_path: Path) -> None:
    """Earlier versions kept no lengths, and no manifest that names them."""
    run = shutil.copytree(trained / "run", tmp_path / "run", symlinks=True)
    (run / "lengths.json").unlink()
    edit_state(run / "best", manifest=None)
    assert loaded(tmp_path).trained.lengths == SourceLengths(200, 200)


def test_a_model_of_numbers_translates_them(trained: Path, tmp_path: Path) -> None:
    """Such a model is recognised by the share of its training lines or, if an earlier version has not counted it, by
    the tokens of its corpus or its vocabulary."""
    lengths = SourceLengths(99, 99, several=0.0, letterless=0.3)
    assert loaded(trained, lengths=lengths).translate(["1"])[0].parts[0][0] == "1"
    numbers = train_tokenizers([("1 2 3 eins", "one")], SubwordsConfig(kind="word", joint=False))
    uncounted = loaded(trained, lengths=replace(lengths, letterless=None)).trained
    model = replace(uncounted, checkpoint=tmp_path / "checkpoints" / "any", tokenizers=numbers)
    assert not model.copies
    is_letter = [any(map(str.isalpha, piece)) for piece in numbers.source.pieces(range(numbers.source.size))]
    for often in (True, False):
        write_counts(tmp_path, {"": [9 if each == often else 1 for each in is_letter]})
        assert replace(model).copies == often


def test_a_pair_that_is_too_long_is_left_blank(
    translator: Translator, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    long = "katze " * 1001
    one, blank, other = translator.align(["hund", long, "katze"], ["dog", "cat", "cat"], first_line=7)
    assert (blank.source_words, blank.target_words, blank.links, blank.weights_TS.shape) == ((), (), (), (0, 0))
    np.testing.assert_array_equal(one.weights_TS, translator.align("hund", "dog").weights_TS)
    scores = translator.score(["hund", "hund", "katze"], ["dog", long, "cat"], first_line=7)
    assert math.isnan(scores[1].score)
    assert scores[1].tokens == ()
    assert scores[2].log_prob == pytest.approx(translator.score("katze", "cat").log_prob, abs=1e-5)
    # the warning of the one call does not silence that of the other, whose text may be another
    assert capsys.readouterr().err.count("warning: line 8: left blank: more subwords on a side than search.max") == 2
    # joined with another model, for which it may be short enough
    backward = translator.align("cat", "katze")
    assert join("intersection")(blank, backward) == blank
    assert join("intersection")(other, replace(blank)).links == ()
