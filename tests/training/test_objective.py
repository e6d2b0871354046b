"""Training with links, from the configuration to what is logged."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nmt
from nmt.alignment.error_rate import Gold, score
from nmt.config.structure import parse_document, validate
from nmt.core.device import Compute
from nmt.core.errors import InputError
from nmt.data.batching import Batch, halves, pad
from nmt.data.token_links import token_links
from nmt.experiment import Experiment, load
from nmt.models.feed import TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.training.config import OptimizerConfig, TrainingConfig
from nmt.training.objective import BatchTotals, Losses, Objective
from nmt.training.optimizer import NamedOptimizer
from nmt.workflows.train import train
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.test_guidance import LINKS as TOKEN_LINKS
from tests.models.test_guidance import MODELS, by_loops, model_of
from tests.models.variants import make
from tests.workflows.runs import assert_same_bits, measured

CPU = Compute(torch.device("cpu"), "float32")


# ------------------------------------------------------------------------------------------------------- the objective


def batch_of() -> Batch:
    """``SOURCES`` and ``TARGETS``, each token a word, with the links of ``LINKS``."""
    source_BS, source_length_B = pad([each[:-1] for each in SOURCES])
    target_BT, target_length_B = pad([each[:-1] for each in TARGETS])
    words = [[(s, t) for (b, t), sources in TOKEN_LINKS.items() for s in sources if b == row] for row in range(3)]
    links = token_links(
        [np.array(each).reshape(-1, 2) for each in words],
        [range(len(each)) for each in SOURCES],
        [range(len(each)) for each in TARGETS],
    )
    return Batch(source_BS, source_length_B, target_BT, target_length_B, np.arange(3), links)


TOTALS = BatchTotals(tokens=sum(map(len, TARGETS)), sentences=3, linked=len(TOKEN_LINKS))


def objective_of(model: Any, **settings: Any) -> Objective:
    config = TrainingConfig.model_validate({"label_smoothing": 0.1, **settings})
    tokenizers: Any = None  # minimum risk alone reads texts
    return Objective(model, config, NamedOptimizer(model, OptimizerConfig(), CPU), CPU, tokenizers)


def gradients(
    model: Any, objective: Objective, batches: list[Batch]
) -> tuple[Losses[torch.Tensor], list[torch.Tensor]]:
    model.zero_grad(set_to_none=True)
    losses = reduce(add, [objective.backward(each, TOTALS, update=1) for each in batches])
    return losses, [torch.zeros_like(each) if each.grad is None else each.grad.clone() for each in model.parameters()]


@pytest.mark.parametrize("normalization", ["tokens", "sentences"])
@pytest.mark.parametrize(("kind", "heads"), [("rnn-feeding", "*"), ("transformer", "layer2.head1")])
def test_the_objective_is_the_usual_one_and_the_mean_over_linked_tokens(
    kind: str, heads: str, normalization: str
) -> None:
    """The batch is one, two halves as when memory is short, or several batches of one update."""
    expected_model = model_of(kind)
    guidance = by_loops(expected_model.eval(), heads)
    usual = token_loss(expected_model.train(), padded(SOURCES), padded(TARGETS), TeacherForcing(), CrossEntropy(0.1))
    count = TOTALS.tokens if normalization == "tokens" else TOTALS.sentences
    total = usual.objective / count + 0.7 * guidance / len(TOKEN_LINKS)
    expected = torch.autograd.grad(total, list(expected_model.parameters()))
    model = model_of(kind).train()
    settings = {"guided_attention": {"weight": 0.7, "heads": heads}, "normalization": normalization}
    own = objective_of(model, **settings)
    first, second = halves(batch_of())
    for batches in ([batch_of()], [first, *halves(second)]):
        losses, found = gradients(model, own, batches)
        assert losses.guidance.item() == pytest.approx(guidance.item(), rel=1e-5)
        assert losses.objective.item() == pytest.approx(usual.objective.item(), rel=1e-5)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4, check_dtype=False)


def test_without_links_a_batch_is_learnt_from_as_ever() -> None:
    """The result is the same to the bit, whether or not other batches of the update have links."""
    model = make(MODELS["transformer"]).train()
    batch = batch_of()
    assert batch.links is not None
    found = []
    for settings, links in (({}, None), ({"guided_attention": {}}, batch.links.of(np.array([], np.int64)))):
        torch.manual_seed(2)
        found.append(gradients(model, objective_of(model, **settings), [replace(batch, links=links)]))
    assert found[0][0] == found[1][0]
    assert all(torch.equal(one, other) for one, other in zip(found[0][1], found[1][1], strict=True))


# ------------------------------------------------------------------------------------------------------------ the runs


def write_links(folder: Path, *, every: int = 1) -> None:
    """Writes the links of word by word translations, for one pair in ``every``."""
    lines = (folder / "train.de").read_text(encoding="utf-8").splitlines()
    links = [" ".join(f"{n}-{n}" for n in range(len(line.split()))) * (i % every == 0) for i, line in enumerate(lines)]
    (folder / "train.align").write_text("".join(f"{each}\n" for each in links), encoding="utf-8")


LINKS = "data.train={source: train.de, target: train.en, links: train.align}"
TRANSFORMER = (
    "model={encoder: {kind: transformer, layers: 2, size: 16, heads: 2, feed_forward: 16}, embedding: {size: 16}, "
    "decoder: {kind: transformer, layers: 2, size: 16, heads: 2, feed_forward: 16}}"
)


@pytest.fixture
def folder(here: Path) -> Path:
    write_links(here, every=2)
    return here


def trained(*settings: str) -> list[dict[str, Any]]:
    """The lines of training."""
    usual = ("training.validation={every: 100, metric: loss, bleu: false}", *settings)
    return measured(train(load(Path("config.yaml"), usual), precision="float32"), "train")


@pytest.mark.parametrize(
    ("model", "sampling"), [("rnn", 0.2), pytest.param("transformer", 0.0, marks=pytest.mark.slow)]
)
def test_the_log_shows_the_guidance_fall(
    model: str, sampling: float, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_links(folder)
    settings = [
        LINKS, "training.stopping.updates=60", "training.optimizer.learning_rate=0.01", "model.dropout.layers=0",
        f"data.subwords.sampling={sampling}", *([TRANSFORMER] if model == "transformer" else []),
    ]  # fmt: skip
    lines = trained(*settings, "training.guided_attention={weight: 10}")
    guidance = [line["guidance"] for line in lines]
    assert len(guidance) == 60
    assert np.mean(guidance[-9:]) < 0.9 * np.mean(guidance[:9])
    assert "links      of 60 pairs, for heads * with weight 10" in capsys.readouterr().err
    assert "guidance" not in trained(*settings, "run=without")[-1]


def test_a_run_that_is_taken_up_ends_in_the_same_bits(folder: Path) -> None:
    settings = [
        LINKS, "training.guided_attention={weight: 0.5}", "training.save_every=3", "training.accumulate=2", TRANSFORMER,
        "data.subwords={kind: unigram, size: 36, sampling: 0.2}",
    ]  # fmt: skip
    trained("run=one", "training.stopping.updates=12", *settings)
    trained("run=two", "training.stopping.updates=5", *settings)
    trained("run=two", "training.stopping.updates=12", *settings)
    assert_same_bits(folder / "one" / "latest", folder / "two" / "latest")
    assert measured("one", "train") == measured("two", "train")


def test_links_alone_change_nothing(folder: Path) -> None:
    """A corpus may have links for the sake of another run."""
    trained("run=without", "training.stopping.updates=3")
    trained("run=with", "training.stopping.updates=3", LINKS)
    assert_same_bits(folder / "without" / "latest", folder / "with" / "latest")


def test_corpora_with_and_without_links(folder: Path) -> None:
    for side in ("de", "en"):
        lines = (folder / f"train.{side}").read_text(encoding="utf-8").splitlines()
        (folder / f"more.{side}").write_text("".join(f"{line} {line}\n" for line in lines), encoding="utf-8")
    corpora = "{source: more.de, target: more.en}, {source: train.de, target: train.en, links: train.align}"
    lines = trained(f"data.train=[{corpora}]", "training.guided_attention={}", "training.stopping.updates=12")
    assert any("guidance" in line for line in lines)
    assert all(np.isfinite(line["loss"]) for line in lines)


GUIDED = "training.guided_attention={}"


NO_ATTENTION = "teaches attention, and model.attention.score is none"
ONE_POSITION = "draws one; leave"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ([LINKS, GUIDED, "model.attention.score=none", "model.decoder.input_feeding=false"], NO_ATTENTION),
        (
            ["training.coverage_loss=1.0", "model.attention.weights=hard"],
            f"coverage_loss teaches weights of all positions, and model.attention.weights: hard {ONE_POSITION}",
        ),
        (
            ["training.coverage_loss=1.0", "training.risk={}"],
            "coverage_loss reads attention to gold words, and risk hypotheses",
        ),
        *(
            (
                [LINKS, GUIDED, f"model.attention.weights={weights}"],
                f"model.attention.weights: {weights} {ONE_POSITION}",
            )
            for weights in ("hard", "gumbel", "argmax", "glimpse")
        ),
        (
            [LINKS, GUIDED, "model.decoder={kind: glimpses}", "model.attention={score: none}"],
            f"and model.decoder.kind: glimpses {ONE_POSITION}",
        ),
        ([GUIDED], "no corpus of data.train has any; give one a file of them, links: FILE"),
        (
            [LINKS, "training.guided_attention={heads: layer1.*}"],
            "training.guided_attention.heads: layer1.*: fits no head of this model; it has head1",
        ),
        (
            [LINKS, TRANSFORMER, "training.guided_attention={heads: layer3.head1}"],
            "layer3.head1: fits no head of this model; it has layer1.head1, layer1.head2, layer2.head1, layer2.head2",
        ),
        ([LINKS, GUIDED, "training.risk={}"], "leave one out"),
        ([LINKS, "training.guided_attention={weight: 0}"], "guided_attention.weight"),
        ([LINKS, "training.guided_attention={head: x}"], "heads"),
    ],
    ids=lambda each: each[-1].partition("=")[2] if isinstance(each, list) else "",
)
def test_what_cannot_be_guided_is_refused(settings: list[str], says: str, folder: Path) -> None:
    with pytest.raises(InputError) as refused:
        load(Path("config.yaml"), settings)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_run_has_links_and_goes_on_with_its_own_guidance_only(folder: Path) -> None:
    (folder / "train.align").rename(folder / "links")
    (folder / "train.align").write_text("\n" * 60, encoding="utf-8")
    with pytest.raises(InputError, match=r"guided_attention: no pair that nmt prepare kept has a link"):
        trained(LINKS, GUIDED)
    (folder / "links").replace(folder / "train.align")
    trained(LINKS, GUIDED)
    with pytest.raises(InputError, match=r"with other training\.guided_attention; go on with its own"):
        trained(LINKS)
    with pytest.raises(InputError, match=r"with other training\.guided_attention\.weight; go on with its own"):
        trained(LINKS, "training.guided_attention={weight: 0.1}")


# ------------------------------------------------------------------------------------------------------------ learning

DIGITS = """\
run: {folder}/{run}
data:
  train: {{source: {folder}/train.source, target: {folder}/train.target, links: {folder}/train.align}}
  valid: {{source: {folder}/test.source, target: {folder}/test.target}}
  subwords: {{kind: unigram, size: 40, sampling: 0.3}}
  filters: {{identical: false, duplicates: false}}
model:
  embedding: {{size: 32}}
  encoder: {{kind: transformer, layers: 2, size: 32, heads: 2, feed_forward: 64, positions: rotary}}
  decoder: {{kind: transformer, layers: 2, size: 32, heads: 2, feed_forward: 64, positions: rotary}}
  dropout: {{embedding: 0.0, layers: 0.0}}
training:
  batching: {{batch_tokens: 500}}
  optimizer: {{learning_rate: 5e-3}}
  guided_attention: {guided}
  stopping: {{updates: 120}}
  validation: {{every: 5000, metric: loss, bleu: false}}
alignment: {{kind: argmax, heads: layer2.head1}}
"""


@pytest.mark.slow
def test_one_head_learns_to_align_where_unguided_ones_have_not(tmp_path: Path) -> None:
    """Numbers of several subwords, in reverse, after so few updates that translation has hardly begun."""
    draw = random.Random(5)
    for name, count in (("train", 2000), ("test", 50)):
        sources = [[str(draw.randrange(100)) for _ in range(draw.randint(2, 6))] for _ in range(count)]
        columns = {
            "source": [" ".join(each) for each in sources],
            "target": [" ".join(reversed(each)) for each in sources],
            "align": [" ".join(f"{n}-{len(each) - 1 - n}" for n in range(len(each))) for each in sources],
        }
        for kind, lines in columns.items():
            (tmp_path / f"{name}.{kind}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sources, targets, links = (
        (tmp_path / f"test.{kind}").read_text(encoding="utf-8").splitlines() for kind in ("source", "target", "align")
    )
    gold = [frozenset((int(s), int(t)) for s, t in (each.split("-") for each in line.split())) for line in links]
    error = {}
    for run, guided in (("guided", "{weight: 1, heads: layer2.head1}"), ("unguided", "null")):
        text = DIGITS.format(folder=tmp_path, run=run, guided=guided)
        trained = train(validate(Experiment, parse_document(text, "config.yaml")), precision="float32")
        found = nmt.load(trained, precision="float32").align(sources, targets)
        error[run] = score([each.links for each in found], [Gold(each, each) for each in gold]).aer
    print(json.dumps(error))
    assert error["guided"] < 0.15
    assert error["unguided"] > 0.5
