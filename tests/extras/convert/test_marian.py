"""MarianMT models as runs, held to `transformers`: logits, greedy and beam search, and hostile folders."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import nmt
from nmt.data.vocabulary import EOS
from nmt.extras.convert.from_marian import import_hf
from nmt.translator.loading import TrainedModel, for_inference, load_trained
from tests.extras.convert.marian_folders import SHAPES, lines, write

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a shape, written once, and its run beside it, `<folder>.run`."""
    root = tmp_path_factory.mktemp("marian")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()

    @cache
    def made(name: str) -> Path:
        folder = write(root / name, SHAPES[name])
        import_hf(folder, root / f"{name}.run")
        return folder

    return made


def run_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.run")


def theirs(folder: Path) -> tuple[Any, Any]:
    """The tokenizer and the model of `transformers`, in float64."""
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    return tokenizer, transformers.MarianMTModel.from_pretrained(folder).double().eval()


def ours(folder: Path) -> TrainedModel:
    """Our model, in float64."""
    trained = load_trained(run_of(folder), device="cpu", precision="float32", prepare=for_inference.body)
    trained.model.double()
    return trained


def order_of(trained: TrainedModel) -> tuple[Tensor, Tensor]:
    """The ids there of our ids, of source and target."""
    sides = (trained.tokenizers.source.imported, trained.tokenizers.target.imported)
    assert sides[0] is not None
    assert sides[1] is not None
    return torch.tensor(sides[0].order), torch.tensor(sides[1].order)


def padded(rows: list[list[int]]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence([torch.tensor([*row, EOS]) for row in rows], batch_first=True)


@pytest.mark.parametrize("name", SHAPES)
@torch.no_grad()
def test_logits_of_real_sentences_are_those_of_transformers(name: str, folders: Callable[[str], Path]) -> None:
    folder, count = folders(name), 200 if name in ("opus", "relu", "separate") else 40
    (tokenizer, model), trained = theirs(folder), ours(folder)
    language = SHAPES[name].languages[:1]
    sources, targets = lines("de", count), lines("en", count)
    texts = [f">>{language[0]}<< {text}" for text in sources] if language else sources
    trained = trained.to(language[0] if language else None)
    x, y = tokenizer(texts, return_tensors="pt", padding=True), tokenizer(text_target=targets, padding=True)
    gold = torch.tensor(y.input_ids)
    logits = model(**x, labels=gold).logits
    source_order, target_order = order_of(trained)
    source_BS = padded(trained.prefixed([trained.tokenizers.source.encode(text) for text in sources]))
    target_BT = padded([trained.tokenizers.target.encode(text) for text in targets])
    assert source_order[source_BS].equal(x.input_ids)
    assert target_order[target_BT].equal(gold)
    readout = trained.model.teacher_forced(target_BT, trained.model.encode(source_BS)).readout_BTR
    is_word = torch.tensor(y.attention_mask).bool()
    assert (trained.model.output(readout) - logits[:, :, target_order])[is_word].abs().max() < 1e-5
    # step by step, as the search computes
    memory = trained.model.encode(source_BS[:3])
    state, token = trained.model.start(memory), trained.model.first_token(3, torch.device("cpu"))
    for place in range(3):
        step = trained.model.step(token, memory, state)
        assert (step.logits_NV - logits[:3, place, target_order]).abs().max() < 1e-5
        token, state = target_BT[:3, place], step.state


def test_greedy_translations_are_those_of_transformers(folders: Callable[[str], Path]) -> None:
    folder, sources = folders("opus"), lines("de", 100, "valid")
    tokenizer, model = theirs(folder)
    x = tokenizer(sources, return_tensors="pt", padding=True)
    expected = tokenizer.batch_decode(model.generate(**x, num_beams=1), skip_special_tokens=True)
    assert len(set(expected)) > 50
    found = nmt.load(run_of(folder), device="cpu").translate(sources, beam=1)
    assert [translation.text for translation in found] == expected


@pytest.mark.parametrize("renormalized", [True, False])
@torch.no_grad()
def test_beams_score_as_high_as_those_of_transformers(
    renormalized: bool, folders: Callable[[str], Path], tmp_path: Path
) -> None:
    folder, sources = shutil.copytree(folders("opus"), tmp_path / "opus"), lines("de", 60, "valid")
    path = folder / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "renormalize_logits": renormalized}))
    import_hf(folder, run_of(folder))
    tokenizer, model = theirs(folder)
    x = tokenizer(sources, return_tensors="pt", padding=True)
    generated = model.generate(**x, num_beams=4)
    translator = nmt.load(run_of(folder), device="cpu")
    trained, pad = translator.trained, tokenizer.pad_token_id
    _, order = order_of(trained)
    ids = trained.prefixed([trained.tokenizers.source.encode(text) for text in sources])
    best = [hypotheses[0] for hypotheses in translator.engine.translate_ids(ids, translator.search)]

    def scores(rows: list[list[int]]) -> Tensor:
        """Log-probability over length, of tokens to the end-of-sentence, as `generate` ranks them."""
        gold = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=pad)
        logits = model(**x, labels=gold).logits
        if renormalized:
            logits[:, :, pad] = -math.inf
        log_probs = logits.log_softmax(-1).gather(2, gold[:, :, None])[:, :, 0].masked_fill(gold == pad, 0.0)
        return log_probs.sum(1) / torch.tensor([len(row) for row in rows])

    theirs_rows = [[token for token in row[1:].tolist() if token != pad] for row in generated]
    ended = torch.tensor([len(row) < 59 for row in theirs_rows])  # at the limit, the end is forced, and costs nothing
    ours_rows = [order[[*each.tokens, EOS]].tolist() for each in best]
    assert ended.sum() > 50
    assert (scores(ours_rows) > scores(theirs_rows) - 1e-5)[ended].all()
    assert (scores(ours_rows) - torch.tensor([each.score for each in best])).abs().max() < 1e-4
