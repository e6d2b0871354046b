"""Properties that every model must have."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.models.feed import Feed, FreeRunning, TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.scheduled_sampling import ScheduledSampling
from nmt.models.seq2seq import Decoded, Seq2Seq, Step
from nmt.search.scoring import Ranking
from nmt.training import checkpoint
from nmt.training.objective import training_criterion
from tests.models.variants import TRANSFORMER, kinds, make, tree, variants
from tests.search.plain_search import beam_search, greedy

EOS = 3
SOURCE_BS = torch.tensor([[4, 5, 1, 4, 3], [5, 3, 0, 0, 0], [5, 5, 4, 3, 0]])
TARGET_BT = torch.tensor([[4, 5, 4, 3], [5, 3, 0, 0], [1, 4, 5, 3]])

every_model = pytest.mark.parametrize("config", list(variants()))
each_kind = pytest.mark.parametrize("config", list(kinds()))


@pytest.fixture(scope="module", params=variants())
def model(request: pytest.FixtureRequest) -> Seq2Seq[Any, Any]:
    """Each model in turn, which the tests only read."""
    return make(request.param)


@pytest.fixture(scope="module")
@torch.no_grad()
def decoded(model: Seq2Seq[Any, Any]) -> Decoded:
    """All positions at once."""
    return model.decode(TARGET_BT, model.encode(SOURCE_BS), TeacherForcing())


def logits(model: Seq2Seq[Any, Any], decoded: Decoded) -> torch.Tensor:
    """Computes the logits (B, T, V) of all positions, with copies."""
    logits_BTV = model.output(decoded.readout_BTR)
    if decoded.copies is None:
        return logits_BTV
    return decoded.copies.mixed(logits_BTV.flatten(0, 1)).log().view_as(logits_BTV)


def steps(model: Seq2Seq[Any, Any]) -> Iterator[Step[Any]]:
    """One step after the other, each reading the gold token before it."""
    memory = model.encode(SOURCE_BS)
    state, token_B = model.start(memory), model.first_token(3, SOURCE_BS.device)
    for gold_B in TARGET_BT.T:
        step = model.step(token_B, memory, state)
        state, token_B = step.state, gold_B
        yield step


@torch.no_grad()
def log_probs(
    model: Seq2Seq[Any, Any], source_S: torch.Tensor, hypotheses: Iterable[tuple[int, ...]]
) -> dict[tuple[int, ...], float]:
    """Computes the log-probability of each hypothesis under teacher forcing, end-of-sentence included."""
    found: dict[tuple[int, ...], float] = {}
    source_1S = source_S[source_S != 0][None]
    for _, group in itertools.groupby(sorted(hypotheses, key=len), key=len):
        same_length = list(group)
        target_NT = torch.tensor([[*tokens, EOS] for tokens in same_length])
        decoded = model.teacher_forced(target_NT, model.encode(source_1S.repeat(len(same_length), 1)))
        chosen_NT = logits(model, decoded).log_softmax(-1).gather(2, target_NT[:, :, None])[:, :, 0]
        found.update(zip(same_length, chosen_NT.sum(dim=1).tolist(), strict=True))
    return found


@torch.no_grad()
def test_forced_equals_stepwise(model: Seq2Seq[Any, Any], decoded: Decoded) -> None:
    for time, step in enumerate(steps(model)):
        torch.testing.assert_close(step.logits_NV, logits(model, decoded)[:, time], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(step.weights_NHS, decoded.weights_BHTS[:, :, time], atol=1e-6, rtol=1e-4)


@torch.no_grad()
def test_padding_gets_no_weight_and_weights_sum_to_one(decoded: Decoded) -> None:
    weights_BHTS = decoded.weights_BHTS
    is_pad_BHTS = (SOURCE_BS == 0)[:, None, None].expand_as(weights_BHTS)
    assert (weights_BHTS[is_pad_BHTS] == 0).all()
    torch.testing.assert_close(weights_BHTS.sum(-1), torch.ones(weights_BHTS.shape[:-1]))


@torch.no_grad()
def test_a_sentence_does_not_depend_on_its_batch(model: Seq2Seq[Any, Any], decoded: Decoded) -> None:
    together = model.output(decoded.readout_BTR)
    for row, (source_S, target_T) in enumerate(zip(SOURCE_BS, TARGET_BT, strict=True)):
        source_1S, target_1T = source_S[None, source_S != 0], target_T[None, target_T != 0]
        alone = model.output(model.teacher_forced(target_1T, model.encode(source_1S)).readout_BTR)
        torch.testing.assert_close(together[row, : target_1T.shape[1]], alone[0], atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_decoding_step_by_step_with_gold_tokens_equals_forced(model: Seq2Seq[Any, Any], decoded: Decoded) -> None:
    always_gold = ScheduledSampling(1.0)
    unrolled = model.decode(TARGET_BT, model.encode(SOURCE_BS), always_gold)
    torch.testing.assert_close(unrolled.readout_BTR, decoded.readout_BTR, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(unrolled.weights_BHTS, decoded.weights_BHTS, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("variational", [False, True], ids=["each position", "one mask"])
@pytest.mark.parametrize("layers", [1, 2])
@torch.no_grad()
def test_a_step_loop_drops_what_all_steps_at_once_drop(variational: bool, layers: int) -> None:
    dropout = {"embedding": 0.5, "layers": 0.5, "variational": variational}
    model = make({**tree(decoder={"layers": layers}), "dropout": dropout}).train()

    def readout(feed: Feed) -> torch.Tensor:
        torch.manual_seed(7)
        return model.decode(TARGET_BT, model.encode(SOURCE_BS), feed).readout_BTR

    forced = readout(TeacherForcing())
    torch.testing.assert_close(readout(ScheduledSampling(1.0)), forced, atol=1e-5, rtol=1e-4)
    assert (forced == 0).any(), "something is dropped"


@torch.no_grad()
def test_free_running_reads_its_own_guesses(model: Seq2Seq[Any, Any]) -> None:
    memory = model.encode(SOURCE_BS)
    decoded = model.decode(TARGET_BT, memory, FreeRunning())
    guesses = logits(model, decoded).argmax(-1)
    torch.testing.assert_close(
        decoded.readout_BTR, model.teacher_forced(guesses, memory).readout_BTR, atol=1e-5, rtol=1e-4
    )


@torch.no_grad()
def test_suppressed_tokens_are_no_guess_and_impossible_in_a_frozen_model() -> None:
    model = make(tree())
    memory = model.encode(SOURCE_BS)
    suppressed = [int(model.output(model.decode(TARGET_BT, memory, FreeRunning()).readout_BTR).argmax(-1)[0, 0]), 2]
    model.output.suppressed = suppressed
    decoded = model.decode(TARGET_BT, memory, FreeRunning())
    logits_BTV = model.output(decoded.readout_BTR)
    assert logits_BTV.isfinite().all()
    logits_BTV[:, :, suppressed] = -torch.inf
    expected_BTR = model.teacher_forced(logits_BTV.argmax(-1), memory).readout_BTR
    torch.testing.assert_close(decoded.readout_BTR, expected_BTR, atol=1e-5, rtol=1e-4)
    frozen = model.train().frozen()
    assert [token for token, bias in enumerate(frozen.output.bias_V) if bias == -torch.inf] == sorted(suppressed)
    assert not frozen.training
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


@torch.no_grad()
def test_states_follow_their_rows(model: Seq2Seq[Any, Any]) -> None:
    memory = model.encode(SOURCE_BS)
    state = model.step(TARGET_BT[:, 0], memory, model.start(memory)).state
    rows = torch.tensor([2, 0, 2])
    own, chosen = memory.select(rows), state.select(rows)
    assert len(chosen) == len(own) == 3
    for token_B in TARGET_BT.T[1:]:  # a state is what follows from it
        expected_step, step = model.step(token_B, memory, state), model.step(token_B[rows], own, chosen)
        torch.testing.assert_close(step.logits_NV, expected_step.logits_NV[rows])
        torch.testing.assert_close(step.weights_NHS, expected_step.weights_NHS[rows])
        state, chosen = expected_step.state, step.state


def test_every_hypothesis_scores_as_its_teacher_forced_rescoring(model: Seq2Seq[Any, Any]) -> None:
    limits = torch.tensor([6, 3, 9])
    found = beam_search(model, SOURCE_BS, limits, beam=4, eos=EOS, exponent=0.7, n_best=4)
    for row, hypotheses in enumerate(found):
        assert hypotheses
        assert sorted(hypotheses, key=lambda each: -each.score) == list(hypotheses)
        assert len({each.tokens for each in hypotheses}) == len(hypotheses)
        expected = log_probs(model, SOURCE_BS[row], [each.tokens for each in hypotheses])
        for each in hypotheses:
            assert each.log_prob == pytest.approx(expected[each.tokens], rel=1e-4)
            assert each.score == pytest.approx(each.log_prob / Ranking(0.7).penalty(len(each.tokens) + 1))
            assert len(each.tokens) + 1 <= limits[row]


@each_kind
def test_beam_one_equals_greedy(config: dict[str, Any]) -> None:
    model = make(config)
    limits = torch.tensor([12, 3, 12])
    beam = beam_search(model, SOURCE_BS, limits, beam=1, eos=EOS, exponent=1.0)
    for one, (other,) in zip(greedy(model, SOURCE_BS, limits, eos=EOS, exponent=1.0), beam, strict=True):
        assert one.tokens == other.tokens
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
        assert one.score == pytest.approx(other.score, abs=1e-4)


@each_kind
def test_a_beam_as_wide_as_the_space_finds_what_brute_force_finds(config: dict[str, Any]) -> None:
    model = make(config)
    limits = torch.tensor([3, 2, 3])
    every = [
        log_probs(
            model,
            SOURCE_BS[row],
            [each for size in range(int(limits[row])) for each in itertools.product([0, 1, 2, 4, 5], repeat=size)],
        )
        for row in range(3)
    ]
    for exponent in (0.0, 1.0):
        found = beam_search(model, SOURCE_BS, limits, beam=6**3, eos=EOS, exponent=exponent, n_best=3)
        for row in range(3):
            scores = ((value / Ranking(exponent).penalty(len(each) + 1), each) for each, value in every[row].items())
            best = sorted(scores, reverse=True)[:3]
            assert [each.tokens for each in found[row]] == [tokens for _, tokens in best]
            assert [each.score for each in found[row]] == pytest.approx([score for score, _ in best], abs=1e-4)


SAVED = {"rnn": tree(), "tied all": tree(tie="all"), "transformer": tree(encoder=TRANSFORMER, decoder=TRANSFORMER)}
SAVED |= {kind: tree(score="none", decoder={"kind": kind}) for kind in ("reencoding", "glimpses")}


@pytest.mark.parametrize("config", SAVED.values(), ids=SAVED)
def test_saved_and_loaded_weights_are_the_same_bits(config: dict[str, Any], tmp_path: Path) -> None:
    model, other = make(config, seed=1), make(config, seed=2)
    checkpoint.save(tmp_path, 7, model, {}, {})
    checkpoint.load_weights(tmp_path / "latest", other)
    for (name, one), (_, two) in zip(model.named_parameters(), other.named_parameters(), strict=True):
        assert torch.equal(one, two), name


@every_model
def test_every_parameter_learns(config: dict[str, Any]) -> None:
    model = make(config, scale=1.0).train()
    for _ in range(3):  # one draw of hard attention may be right by chance
        token_loss(model, SOURCE_BS, TARGET_BT, TeacherForcing(), training_criterion(model)).objective.backward()  # type: ignore[no-untyped-call]
        idle = [name for name, each in model.named_parameters() if each.grad is None or not each.grad.any()]
        if not idle:
            break
    assert idle == []


@each_kind
def test_bfloat16_gives_about_the_same_loss(config: dict[str, Any]) -> None:
    model = make(config, scale=1.0)
    exact = token_loss(model, SOURCE_BS, TARGET_BT, TeacherForcing(), CrossEntropy(0.1))
    with torch.autocast("cpu", torch.bfloat16):
        rounded = token_loss(model, SOURCE_BS, TARGET_BT, TeacherForcing(), CrossEntropy(0.1))
        trained = token_loss(model.train(), SOURCE_BS, TARGET_BT, TeacherForcing(), training_criterion(model, 0.1))
        trained.objective.backward()  # type: ignore[no-untyped-call]
    assert rounded.objective.item() == pytest.approx(exact.objective.item(), rel=0.05)
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())


@every_model
def test_gradients_are_those_of_unrolled_steps(config: dict[str, Any]) -> None:
    """The pass over all steps at once, against autograd through one step after the other."""
    model = make(config, scale=1.0).double()
    weights = torch.randn(*TARGET_BT.shape, 6, dtype=torch.float64)

    def gradients(logits_BTV: torch.Tensor) -> tuple[torch.Tensor, ...]:
        # nothing reaches a score whose best position is taken whatever its value
        found = torch.autograd.grad((logits_BTV * weights).sum(), list(model.parameters()), allow_unused=True)
        return tuple(torch.zeros(1) if each is None else each for each in found)

    at_once = gradients(logits(model, model.teacher_forced(TARGET_BT, model.encode(SOURCE_BS))))
    stepwise = gradients(torch.stack([step.logits_NV for step in steps(model)], dim=1))
    for (name, _), one, other in zip(model.named_parameters(), at_once, stepwise, strict=True):
        # attention weights pass through float32
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}")
