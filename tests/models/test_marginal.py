"""The likelihood summed over every source position, against an enumeration in plain loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.feed import TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.position_losses import MarginalLikelihood
from nmt.models.rnn.decoder import RNNDecoder
from nmt.models.seq2seq import Seq2Seq
from tests.attention.oracles import SCORE_ORACLES
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.variants import make, tree

MARGINAL = {"kind": "hard", "training": "marginal"}


def model_of(score: Any = "general", **decoder: Any) -> Seq2Seq[Any, Any]:
    """In training, but that nothing is dropped."""
    config = tree(
        score=score, weights=MARGINAL, decoder={"query": "current", "input_feeding": False, "cell": "gru", **decoder}
    )
    config["dropout"] = {"embedding": 0.0, "layers": 0.0}
    return make(config, scale=1.5).double().train()


def tops(model: Seq2Seq[Any, Any], target: list[int], summary_D: Tensor) -> tuple[Tensor, Tensor]:
    """The words read and the states of torch's own recurrence over them."""
    decoder = model.decoder
    assert isinstance(decoder, RNNDecoder)
    words_TE = decoder.embedding.weight_VD[torch.tensor([model.bos, *target[:-1]])]
    hidden = decoder.handover.start(summary_D[None])
    (layer,) = decoder.stack.rnns
    states_TD, _ = layer(words_TE, hidden[0])
    return words_TE, states_TD


def enumerated(
    model: Seq2Seq[Any, Any], source: list[int], target: list[int], *, smoothing: float = 0.0
) -> tuple[list[Tensor], list[Tensor], int]:
    """Computes for each target token -log of the sum over s of a_s p~(token | s), with p~ smoothed and not, and the
    number of tokens that are the best guess at the heaviest position; for one sentence without padding, one source
    position after the other."""
    decoder = model.decoder
    assert isinstance(decoder, RNNDecoder)
    assert decoder.attention is not None
    source_1S = torch.tensor([source])
    encoded = model.encoder(model.encoder.embed(source_1S), source_1S == model.pad)
    words_TE, states_TD = tops(model, target, encoded.final_BD[0])
    smoothed: list[Tensor] = []
    plain: list[Tensor] = []
    correct = 0
    for step, gold in enumerate(target):
        scores, likelihoods, log_likelihoods, is_best = [], [], [], []
        for place, state_D in enumerate(encoded.states_BSD[0]):
            oracle = SCORE_ORACLES[decoder.attention.score.kind]
            query = [states_TD[step], *([words_TE[step]] if decoder.query_embedding else [])]
            scores.append(oracle(decoder.attention, torch.cat(query), state_D, place))
            # the context with all weight on this one position is its state
            seen = [states_TD[step], state_D, *([words_TE[step]] if decoder.readout_embedding else [])]
            readout_R = torch.tanh(decoder.readout.weight @ torch.cat(seen) + decoder.readout.bias)
            log_p_V = (model.output.weight_VD @ readout_R + model.output.bias_V).log_softmax(-1)
            log_likelihoods.append(log_p_V[gold])
            likelihoods.append((1 - smoothing) * log_p_V[gold] + smoothing * log_p_V.mean())
            is_best.append(bool(log_p_V.argmax() == gold))
        exponentials = [each.exp() for each in scores]
        weights = [each / sum(exponentials) for each in exponentials]
        smoothed.append(-torch.log(sum(a * each.exp() for a, each in zip(weights, likelihoods, strict=True))))  # type: ignore[arg-type]
        plain.append(-torch.log(sum(a * each.exp() for a, each in zip(weights, log_likelihoods, strict=True))))  # type: ignore[arg-type]
        correct += is_best[max(range(len(weights)), key=lambda place: weights[place].item())]
    return smoothed, plain, correct


CASES = {
    "general": model_of,
    "additive": lambda: model_of("additive"),
    "location": lambda: model_of({"kind": "location", "positions": 3}),
    "word in readout and query": lambda: model_of(readout_embedding=True, readout_size=4, query_embedding=True),
}


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("case", CASES)
def test_the_loss_and_its_gradients_are_those_of_the_enumeration(case: str, smoothing: float) -> None:
    """In a batch of sentences of different lengths; autograd through the enumeration gives the gradients."""
    model = CASES[case]()
    named = dict(model.named_parameters())
    loss = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), MarginalLikelihood(smoothing))
    smoothed: list[Tensor] = []
    plain: list[Tensor] = []
    correct = 0
    for source, target in zip(SOURCES, TARGETS, strict=True):
        one, other, right = enumerated(model, source, target, smoothing=smoothing)
        smoothed, plain, correct = smoothed + one, plain + other, correct + right
    objective = torch.stack(smoothed).sum()
    assert loss.objective.item() == pytest.approx(objective.item(), rel=1e-5)
    assert loss.cross_entropy_N.tolist() == pytest.approx([each.item() for each in plain], rel=1e-4, abs=1e-5)
    assert not loss.cross_entropy_N.requires_grad
    assert loss.correct is not None
    assert loss.correct.item() == correct
    ours = torch.autograd.grad(loss.objective, list(named.values()))
    theirs = torch.autograd.grad(objective, list(named.values()), allow_unused=True)
    for name, one_gradient, other_gradient in zip(named, ours, theirs, strict=True):
        expected = torch.zeros_like(one_gradient) if other_gradient is None else other_gradient
        # weights and likelihoods pass through float32
        torch.testing.assert_close(
            one_gradient, expected, atol=2e-5, rtol=2e-4, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_the_sum_differs_from_the_likelihood_of_the_mean_context() -> None:
    """The loss is a mixture of likelihoods, not the likelihood of a mixture."""
    model = model_of()
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    marginal = token_loss(model, source_BS, target_BT, TeacherForcing(), MarginalLikelihood())
    decoded = model.teacher_forced(target_BT, model.encode(source_BS))
    gold_N = target_BT[target_BT != 0]
    mixed = model.output.loss(decoded.readout_BTR[target_BT != 0], gold_N)
    assert abs(marginal.objective.item() - mixed.objective.item()) > 0.05


def test_more_padding_changes_nothing() -> None:
    model = model_of()
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    wide_BS, long_BT = (torch.nn.functional.pad(each, (0, 3)) for each in (source_BS, target_BT))
    losses = [
        token_loss(model, source, target, TeacherForcing(), MarginalLikelihood(0.1))
        for source, target in ((source_BS, target_BT), (wide_BS, long_BT))
    ]
    one, other = (torch.autograd.grad(each.objective, list(model.parameters())) for each in losses)
    assert losses[0].objective.item() == pytest.approx(losses[1].objective.item(), rel=1e-6)
    assert len(losses[1].cross_entropy_N) == sum(map(len, TARGETS))
    for first, second in zip(one, other, strict=True):
        torch.testing.assert_close(first, second, atol=1e-6, rtol=1e-5)


def test_without_training_the_best_position_alone_counts() -> None:
    """Decoding does the same: the loss of a validation is that of the model that translates."""
    model = model_of().eval()
    loss = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), CrossEntropy())
    found: list[float] = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        decoded = model.teacher_forced(torch.tensor([target]), model.encode(torch.tensor([source])))
        assert decoded.marginal is None
        assert set(decoded.weights_BHTS.unique().tolist()) <= {0.0, 1.0}
        log_p_TV = model.output(decoded.readout_BTR[0]).log_softmax(-1)
        found += [-log_p_TV[step, gold].item() for step, gold in enumerate(target)]
    assert loss.cross_entropy_N.tolist() == pytest.approx(found, rel=1e-4, abs=1e-5)


def test_training_towards_the_sum_raises_it() -> None:
    torch.manual_seed(0)
    model = model_of().float()
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(30):
        loss = token_loss(model, source_BS, target_BT, TeacherForcing(), MarginalLikelihood())
        optimizer.zero_grad()
        loss.objective.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.cross_entropy.item())
    assert losses[-1] < 0.2 * losses[0]
