"""Translations that follow the most similar known ones, against the formula in plain loops."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file

import nmt
from nmt.core.device import Compute
from nmt.core.errors import InputError
from nmt.data.prepared import opened
from nmt.data.vocabulary import BOS, EOS
from nmt.extras.decoding import nearest_neighbors
from nmt.extras.decoding.nearest_neighbors import KERNELS, Datastore, WithNeighbors
from nmt.extras.service.batcher import RequestOptions
from nmt.extras.service.engine import TranslatorEngine
from nmt.models.seq2seq import Seq2Seq
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from tests.models.variants import TRANSFORMER, kinds, make, tree
from tests.search.plain_search import padded
from tests.workflows.runs import error, refused, translated
from tests.workflows.runs import nmt as run

CPU = Compute(torch.device("cpu"), "float32")
PAIRS = [([4, 5], [6, 7, 8]), ([4], [9]), ([5, 6, 7, 8], [4, 4]), ([9, 8], [7, 5, 6])]
SOURCES = [[4, 5, EOS], [8, 9, 7, EOS]]
HISTORIES = [[6, 7], [7, 7], [9], [4]]
"""Tokens so far of two hypotheses for each source."""


def datastore(model: Seq2Seq[Any, Any]) -> Datastore:
    trained = cast(Any, SimpleNamespace(model=model, compute=CPU))
    return Datastore.of(trained, *([list(side) for side in zip(*PAIRS, strict=True)]))


def readout(model: Seq2Seq[Any, Any], source: list[int], before: list[int]) -> list[float]:
    memory = model.encode(torch.tensor([source]))
    state = model.start(memory)
    for token in [BOS, *before]:
        step = model.decoder.step(torch.tensor([token]), model.decoder_memory(memory), state)
        state = step.state
    return cast(list[float], step.readout_NR[0].double().tolist())


def vector(model: Seq2Seq[Any, Any], source: list[int]) -> list[float]:
    source_BS = torch.tensor([source])
    found = model.encoder(model.encoder.embed(source_BS), source_BS == model.pad).final_BD[0].double().tolist()
    return [x / math.hypot(*found) for x in found]


def expected(
    model: Seq2Seq[Any, Any], source: list[int], history: list[int], plain: list[float], kernel: Any, skipped: int = 0
) -> list[float]:
    """The probabilities of the next token, from those of the model."""
    own, (strength, temperature, most) = vector(model, source), kernel
    cosine = [sum(a * b for a, b in zip(own, vector(model, [*known, EOS]), strict=True)) for known, _ in PAIRS]
    similar = sorted(range(len(PAIRS)), key=lambda pair: -cosine[pair])
    similar = similar[skipped : skipped + nearest_neighbors.SENTENCES]
    keys = [
        (readout(model, [*PAIRS[pair][0], EOS], PAIRS[pair][1][:t]), token)
        for pair in range(len(PAIRS))
        for t, token in enumerate([*PAIRS[pair][1], EOS])
    ]
    t = temperature * sum(sum(x * x for x in key) for key, _ in keys) / len(keys)
    query = readout(model, source, history)
    votes = sorted(
        (
            (sum((a - b) ** 2 for a, b in zip(query, readout(model, [*known, EOS], target[:at]), strict=True)), token)
            for known, target in (PAIRS[pair] for pair in similar)
            for at, token in enumerate([*target, EOS])
        )
    )[: nearest_neighbors.NEAREST]
    strengths = [(strength * math.exp(-distance / t), token) for distance, token in votes]
    total = sum(strength for strength, _ in strengths)
    weight = min(total / (1 + total), most)
    shares = [weight * sum(s for s, token in strengths if token == v) / total for v in range(len(plain))]
    return [(1 - weight) * p + share for p, share in zip(plain, shares, strict=True)]


POINTER = tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER, copying="pointer")


@pytest.mark.parametrize("config", [*kinds(), pytest.param(POINTER, id="pointer")])
@torch.inference_mode()
def test_near_keys_vote_for_tokens(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_neighbors, "SENTENCES", 3)
    monkeypatch.setattr(nearest_neighbors, "NEAREST", 5)
    model, kernel = make(config, tokens=10).eval(), (4.0, 0.5, 0.6)
    followed = WithNeighbors(model, replace(datastore(model), kernel_3=torch.tensor(kernel)))
    memory = followed.encode(padded(SOURCES))
    for length in (1, 2):
        histories = [history[:length] for history in HISTORIES if len(history) >= length]
        sources = SOURCES if length == 1 else SOURCES[:1]
        rows = memory.part(slice(len(sources)))
        state = followed.start(rows).repeat(2)
        for tokens in zip(*([BOS, *history] for history in histories), strict=True):
            step = followed.step(torch.tensor(tokens), rows, state)
            state = step.state
        for row, history in enumerate(histories):
            source = sources[row // 2]
            single = model.encode(torch.tensor([source]))
            plain_state = model.start(single)
            for token in [BOS, *history]:
                plain = model.step(torch.tensor([token]), single, plain_state)
                plain_state = plain.state
            p = plain.logits_NV[0].double().softmax(0).tolist()
            found = step.logits_NV[row].exp().tolist()
            assert found == pytest.approx(expected(model, source, history, p, kernel), abs=2e-3)  # keys are of float16
            assert sum(found) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("are_own", [False, True])
def test_the_kernel_is_the_one_that_makes_held_out_pairs_likelier(
    are_own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest_neighbors, "SENTENCES", 2)
    model = make(tree(), tokens=10).eval()
    store = datastore(model)
    trained = cast(Any, SimpleNamespace(model=model, compute=CPU))
    some = PAIRS[:2] if are_own else [([4, 6], [6, 7]), ([9, 9, 8], [7])]
    wanted = []
    with torch.inference_mode():
        for kernel in KERNELS:
            total = 0.0
            for source, target in some:
                memory = model.encode(torch.tensor([[*source, EOS]]))
                state = model.start(memory)
                for at, token in enumerate([BOS, *target]):
                    step = model.step(torch.tensor([token]), memory, state)
                    state, plain = step.state, step.logits_NV[0].double().softmax(0).tolist()
                    p = expected(model, [*source, EOS], target[:at], plain, kernel, skipped=int(are_own))
                    total += math.log(p[[*target, EOS][at]])
            wanted.append(total)
    sources, targets = [list(side) for side in zip(*some, strict=True)]
    assert store.log_likelihoods(trained, sources, targets, are_own=are_own) == pytest.approx(wanted, abs=0.02)
    best = KERNELS[wanted.index(max(wanted))]
    for kernels in (KERNELS, KERNELS[::-1]):  # whichever of them comes first
        monkeypatch.setattr(nearest_neighbors, "KERNELS", kernels)
        chosen = store.with_best_kernel(trained, sources, targets, are_own=are_own)
        assert chosen.kernel_3.tolist() == pytest.approx(best)
    worst = replace(store, kernel_3=torch.tensor(KERNELS[wanted.index(min(wanted))]))
    chosen = worst.with_best_kernel(trained, sources, targets, are_own=are_own)
    assert chosen.kernel_3.tolist() == pytest.approx(best)


def test_memory_limits_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    model, warnings = make(tree(), tokens=10).eval(), list[str]()
    tokens = sum(len(target) for _, target in PAIRS)
    monkeypatch.setattr("nmt.core.log.warning", warnings.append)
    for size, pairs in ((2 * model.decoder.readout_size * tokens + 1, 4), (2 * model.decoder.readout_size * tokens, 2)):
        monkeypatch.setattr(nearest_neighbors, "MOST_BYTES", size)
        assert len(datastore(model).count_P) == pairs
    assert warnings == ["--neighbors: one of 2 pairs is followed, as all would take too much memory"]


@torch.inference_mode()
def test_a_known_source_gets_its_translation_in_any_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_neighbors, "KERNELS", [(4.0, 1e-3, 0.6)])  # no other key votes
    model = make(tree(), tokens=10).eval()
    half = make(tree(), tokens=10).eval().to(torch.bfloat16)
    engines = [
        TorchEngine(cast(Any, WithNeighbors(model, datastore(model))), CPU),
        TorchEngine(cast(Any, WithNeighbors(model, datastore(model))), Compute(CPU.device, "bfloat16")),
        TorchEngine(cast(Any, WithNeighbors(half, datastore(half))), CPU),
    ]
    for beam, engine in product((1, 3), engines):
        config = SearchConfig(beam=beam, split_longer_than=None, repetition_margin=None)
        sources = [source for source, _ in PAIRS]
        together = engine.translate_ids([*sources, [6, 6]], config)
        alone = [engine.translate_ids([source], config)[0] for source in sources]
        for one, other, (_, target) in zip(together, alone, PAIRS, strict=False):
            assert one[0].tokens == other[0].tokens
            assert beam > 1 or list(one[0].tokens) == target


def test_translations_follow_files_and_the_training_pairs(trained: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(trained, own, symlinks=True)
    (own / "memory.tsv").write_text("Hund\twet rain and dog\n", encoding="utf-8")
    text = b"Hund\nRegen\n"
    followed = translated(own, "--neighbors", "memory.tsv", text=text).decode().split("\n")
    assert followed[0] == "wet rain and dog"
    (kept,) = (own / "run").glob("neighbors-*")
    kept.write_bytes(b"damaged")
    assert translated(own, "--neighbors", "memory.tsv", text=text).decode().split("\n") == followed
    written = kept.stat().st_mtime_ns
    translator = nmt.load(own / "run", neighbors=own / "memory.tsv", device="cpu", precision="float32")
    assert translator.translate("Hund").text == "wet rain and dog"
    assert kept.stat().st_mtime_ns == written
    assert translated(own, "--neighbors", "train", text=text).count(b"\n") == 2
    data = opened(translator.trained.experiment.data, run=own / "run")
    (of_train,) = {*(own / "run").glob("neighbors-*")} - {kept}
    assert len(load_file(of_train)["count_P"]) == len(data.train)
    assert len(load_file(of_train)["key_XR"]) == sum(len(data.train.target(row)) + 1 for row in range(len(data.train)))
    (own / "x.de").write_text("Hund\n", encoding="utf-8")
    (own / "x.en").write_text("wet rain and dog\n", encoding="utf-8")
    files = ("--source", "x.de", "--reference", "x.en", "--neighbors", "memory.tsv", "--json")
    assert json.loads(run("evaluate", "run", *files, folder=own).stdout)["BLEU"]["value"] == pytest.approx(100)
    done = run("evaluate", "--hypothesis", "x.en", *files[2:], folder=own)
    assert error(done) == "--neighbors: is for a search; leave it out, or --hypothesis"
    assert "nothing.tsv" in refused(own, "--neighbors", "nothing.tsv")
    assert "--wait" in refused(own, "--neighbors", "train", "--wait", "3")
    (answer,) = TranslatorEngine(translator).answer(["Hund"], RequestOptions(beam=1), lambda: None)
    assert answer.tree["translations"][0]["text"] == "wet rain and dog"
    done = run("serve", "run", "--neighbors", "memory.tsv", "--ensemble", "run", folder=own)
    assert error(done) == "--neighbors: cannot be had together with --ensemble; leave one of them out"
    with pytest.raises(InputError, match="leave out --ensemble"):
        nmt.load(own / "run", neighbors="train", ensemble=[own / "run"])
    (own / "long.tsv").write_text(f"{'Hund ' * 300}\tdog\n", encoding="utf-8")
    assert "no pair is short enough" in refused(own, "--neighbors", "long.tsv")
