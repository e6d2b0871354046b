"""The Transformer against torch's own layers, the papers' formulas in plain loops, and itself one row at a time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.attention.attention import Attention
from nmt.attention.multihead import MultiHead
from nmt.attention.registry import SCORES
from nmt.models.config import ModelConfig
from nmt.models.feed import FreeRunning, TeacherForcing
from nmt.models.loss import token_loss
from nmt.models.scheduled_sampling import ScheduledSampling
from nmt.models.seq2seq import Encoded, Seq2Seq
from nmt.models.transformer.block import EmbeddingLayer
from nmt.models.transformer.config import ROTATING, TransformerConfig
from nmt.models.transformer.decoder import TransformerDecoder
from nmt.models.transformer.encoder import TransformerEncoder
from nmt.nn.config import DropoutConfig
from nmt.nn.dropout import Dropout
from nmt.training.objective import training_criterion
from tests.attention.oracles import attention_config, reinforce, softmax
from tests.models import torch_transformer
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.torch_transformer import entered, turned
from tests.models.variants import TRANSFORMER, make, tree

SOURCE_BS, TARGET_BT = padded(SOURCES), padded(TARGETS)
IS_PAD_BS = SOURCE_BS == 0
NO_DROPOUT = {"embedding": 0.0, "layers": 0.0}


def settings(
    *,
    source: str = "scaled_dot",
    weights: Any = "softmax",
    tie: str = "none",
    dropout: dict[str, float] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """A small model that is a Transformer on both sides; attention to the source has the first two."""
    sides = {**TRANSFORMER, **options}
    made = tree(score=source, weights=weights, tie=tie, encoder=sides, decoder=sides)
    return {**made, "dropout": {**NO_DROPOUT, **(dropout or {})}}


def encoder_of(model: Seq2Seq[Any, Any]) -> TransformerEncoder:
    assert isinstance(model.encoder, TransformerEncoder)
    return model.encoder


def decoder_of(model: Seq2Seq[Any, Any]) -> TransformerDecoder:
    assert isinstance(model.decoder, TransformerDecoder)
    return model.decoder


def section(tree: dict[str, Any], side: str) -> TransformerConfig:
    found = getattr(ModelConfig.model_validate(tree), side)
    assert isinstance(found, TransformerConfig)
    return found


def memory_of(decoder: TransformerDecoder, states_BSD: Tensor, is_pad_BS: Tensor = IS_PAD_BS) -> Any:
    return decoder.memory(Encoded(states_BSD, states_BSD.new_zeros(len(states_BSD), 0), is_pad_BS))


def gradients(found: Tensor, of: list[Tensor]) -> list[Tensor]:
    torch.manual_seed(5)
    back = torch.randn(found.shape, dtype=found.dtype)
    return list(torch.autograd.grad((found * back).sum(), of))


def assert_same(ours: Tensor, theirs: Tensor, of: dict[str, Tensor], *, close: float) -> None:
    """In value and in the gradients of everything."""
    torch.testing.assert_close(ours, theirs, atol=close, rtol=close)
    pairs = zip(gradients(ours, list(of.values())), gradients(theirs, list(of.values())), strict=True)
    for name, (one, other) in zip(of, pairs, strict=True):
        assert other.abs().max() > 1e-3, f"{name} has no say"
        torch.testing.assert_close(
            one, other, atol=10 * close, rtol=close, msg=lambda text, name=name: f"{name}: {text}"
        )


# ---- against torch's layers

every_kind = [
    pytest.param(norm, activation, positions, id=f"{norm}-{activation}-{positions}")
    for norm in ("pre", "post")
    for activation, positions in (("relu", "learned"), ("gelu", "learned"), ("relu", "sinusoidal"))
]
"""Sinusoids are formed in float32, what is learnt is exact."""


@pytest.mark.parametrize("training", [True, False], ids=["training", "eval"])
@pytest.mark.parametrize(("norm", "activation", "positions"), every_kind)
def test_the_encoder_equals_torchs(norm: str, activation: str, positions: str, training: bool) -> None:
    config = settings(norm=norm, activation=activation, positions=positions, layers=3)
    if positions == "learned":
        config["encoder"]["max_positions"] = config["decoder"]["max_positions"] = 5
    encoder = encoder_of(make(config).double()).train(training)
    embedded_BSE = encoder.embed(SOURCE_BS).detach().requires_grad_()
    encoded = encoder(embedded_BSE, IS_PAD_BS)
    theirs_BSD = torch_transformer.encode(section(config, "encoder"), encoder, embedded_BSE, IS_PAD_BS)
    learnt = {name: each for name, each in encoder.named_parameters() if not name.startswith("embedding")}
    close = 1e-5 if positions == "sinusoidal" else 1e-9
    # with a word's own state at padding, too: nothing reads it, but nothing is different about it
    assert_same(encoded.states_BSD, theirs_BSD, {"the embeddings": embedded_BSE, **learnt}, close=close)
    for row, source in enumerate(SOURCES):
        mean_D = sum(theirs_BSD[row, place] for place in range(len(source))) / len(source)
        torch.testing.assert_close(encoded.final_BD[row], mean_D, atol=close, rtol=close)


@pytest.mark.parametrize("training", [True, False], ids=["training", "eval"])
@pytest.mark.parametrize(("norm", "activation", "positions"), every_kind)
def test_the_decoder_equals_torchs(norm: str, activation: str, positions: str, training: bool) -> None:
    config = settings(norm=norm, activation=activation, positions=positions, layers=3)
    if positions == "learned":
        config["encoder"]["max_positions"] = config["decoder"]["max_positions"] = 4
    decoder = decoder_of(make(config).double()).train(training)
    torch.manual_seed(3)
    states_BSD = torch.randn(*SOURCE_BS.shape, 8, dtype=torch.float64, requires_grad=True)
    decoded = decoder.teacher_forced(TARGET_BT, memory_of(decoder, states_BSD))
    theirs = torch_transformer.decode(section(config, "decoder"), decoder, TARGET_BT, states_BSD, IS_PAD_BS)
    of = {"the encoder's states": states_BSD, **dict(decoder.named_parameters())}
    close = 1e-5 if positions == "sinusoidal" else 1e-9
    assert_same(decoded.readout_BTR, theirs.states_BTD, of, close=close)
    if training:
        assert decoded.weights_BHTS.shape[:3] == (3, 0, 4)
    else:
        torch.testing.assert_close(decoded.weights_BHTS, theirs.weights_BHTS.float(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("tie", ["output", "all"])
def test_a_tied_output_reads_a_projection_as_wide_as_the_embedding(tie: str) -> None:
    config = settings(tie=tie, size=12, heads=3)
    model = make(config).double()
    decoder = decoder_of(model)
    memory_BSD = torch.randn(*SOURCE_BS.shape, 12, dtype=torch.float64)
    theirs = torch_transformer.decode(section(config, "decoder"), decoder, TARGET_BT, memory_BSD, IS_PAD_BS)
    projection = dict(decoder.readout.named_parameters())
    expected_BTR = theirs.states_BTD @ projection["weight"].T + projection["bias"]
    decoded = decoder.teacher_forced(TARGET_BT, memory_of(decoder, memory_BSD))
    torch.testing.assert_close(decoded.readout_BTR, expected_BTR, atol=1e-5, rtol=1e-5)
    logits_BTV = expected_BTR @ decoder.embedding.weight_VD.T + model.output.bias_V
    torch.testing.assert_close(model.output(decoded.readout_BTR), logits_BTV, atol=1e-4, rtol=1e-5)


def test_where_the_widths_agree_nothing_is_projected() -> None:
    for tie in ("none", "output", "all"):
        model = make(settings(tie=tie))
        assert isinstance(decoder_of(model).readout, nn.Identity)
        assert encoder_of(model).entrance.widen is decoder_of(model).entrance.widen is None
    assert make(settings(tie="none", size=12, heads=3)).output.weight_VD.shape == (6, 12)


# ---- positions


def entrance_of(width: int, **options: Any) -> tuple[TransformerConfig, EmbeddingLayer]:
    config = TransformerConfig.model_validate({"size": 6, "heads": 1, **options})
    torch.manual_seed(1)
    return config, EmbeddingLayer(config, width=width, dropout=DropoutConfig(embedding=0.0)).double()


@pytest.mark.parametrize("width", [6, 4], ids=["as wide", "narrower"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_embeddings_are_scaled_widened_and_get_positions(positions: str, width: int) -> None:
    config, entrance = entrance_of(width, positions=positions)
    embedded_BTE = torch.randn(2, 5, width, dtype=torch.float64)
    expected_BTD = entered(config, entrance, embedded_BTE)
    torch.testing.assert_close(entrance(embedded_BTE, torch.arange(5)[None]), expected_BTD, atol=1e-6, rtol=1e-6)
    rows = [torch.tensor([4, 0]), torch.tensor([1, 3])]  # what stands at other positions for each row
    chosen_BTE = torch.stack([embedded_BTE[b, each] for b, each in enumerate(rows)])
    expected_BTD = torch.stack([expected_BTD[b, each] for b, each in enumerate(rows)])
    torch.testing.assert_close(entrance(chosen_BTE, torch.stack(rows)), expected_BTD, atol=1e-6, rtol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "decoder"])
def test_rotary_turns_queries_and_keys_and_not_values(causal: bool) -> None:
    torch.manual_seed(2)
    attention = MultiHead(
        attention_config("scaled_dot"), heads=2, query_size=8, key_size=8, dropout=0.0, causal=causal, rotary=True
    )
    attention = attention.double().eval()
    assert attention.key_weight_QK is not None
    x_TQ = 2 * torch.randn(4, 8, dtype=torch.float64)
    found, _ = attention.attend_to_self(x_TQ[None], torch.arange(4)[None], None)
    for t in range(4):
        heads: list[float] = []
        for h, rows in enumerate((slice(0, 4), slice(4, 8))):
            query_A = turned((attention.query_weight_QQ[rows] @ x_TQ[t]).tolist(), t)
            scores = []
            for s in range(t + 1 if causal else 4):
                key_A = turned((attention.key_weight_QK[rows] @ x_TQ[s]).tolist(), s)
                scores.append(sum(q * k for q, k in zip(query_A, key_A, strict=True)) / 2.0)
            weights_S = softmax(scores)
            assert found.weights()[0, h, t].tolist() == pytest.approx(weights_S + [0.0] * (4 - len(scores)), abs=1e-5)
            values_SA = x_TQ[: len(scores)] @ attention.value_weight_QK[rows].T
            heads += (torch.tensor(weights_S, dtype=torch.float64) @ values_SA).tolist()
        expected_Q = attention.out_weight_QQ @ torch.tensor(heads, dtype=torch.float64)
        torch.testing.assert_close(found.context_NTQ[0, t], expected_Q, atol=1e-5, rtol=1e-5)


def moves(score: str) -> float:
    """Returns the largest change of the weights of rotary self-attention when a sentence stands seven positions further
    on."""
    torch.manual_seed(2)
    attention = MultiHead(
        attention_config(score), heads=2, query_size=8, key_size=8, dropout=0.0, causal=False, rotary=True
    )
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    attention = attention.double().eval()
    x_BTQ, position_1T = torch.randn(2, 5, 8, dtype=torch.float64), torch.arange(5)[None]
    here, there = (attention.attend_to_self(x_BTQ, position_1T + shift, None)[0] for shift in (0, 7))
    return (here.weights() - there.weights()).abs().max().item()


@torch.no_grad()
@pytest.mark.parametrize("score", list(SCORES))
def test_rotary_goes_with_the_scores_for_which_the_distance_alone_counts(score: str) -> None:
    assert (moves(score) < 1e-4) == (score in ROTATING)


# ---- steps, rows and heads


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_steps_count_on_from_what_is_kept(positions: str) -> None:
    model = make(settings(positions=positions)).double()
    decoder, memory = decoder_of(model), model.encode(SOURCE_BS)
    forced = decoder.teacher_forced(TARGET_BT, memory)
    state = model.start(memory)
    for time in range(TARGET_BT.shape[1]):
        assert state.position_N.tolist() == [time] * 3
        assert [each.keys_BHSA.shape[2] for each in state.layers] == [time, time]
        step = decoder.step(TARGET_BT[:, time], memory, state)
        torch.testing.assert_close(step.readout_NR, forced.readout_BTR[:, time])
        torch.testing.assert_close(step.weights(), forced.weights_BHTS[:, :, time])
        state = step.state


BEAMS = 3
WORDS_NT = torch.tensor([[4, 5, 1], [1, 1, 5], [5, 4, 4]]).repeat(len(SOURCES), 1).roll(2, 1)
WORDS_NT[::2] = WORDS_NT[::2].flip(1)


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"positions": "rotary"}, {"source": "additive"}, {"weights": "glimpse"},
                                     {"weights": {"kind": "local_m", "width": 1}}],
                         ids=["sinusoidal", "rotary", "additive", "glimpse", "local_m"])  # fmt: skip
def test_a_beams_rows_give_what_each_gives_alone(options: dict[str, Any]) -> None:
    model = make(settings(**options)).double()
    memory = model.encode(SOURCE_BS)
    state = model.start(memory).repeat(BEAMS)
    beams = []
    for time in range(3):
        beams.append(model.step(WORDS_NT[:, time], memory, state))
        state = beams[-1].state
    for row in range(BEAMS * len(SOURCES)):
        own = memory.select(torch.tensor([row // BEAMS]))
        state = model.start(own)
        for time in range(3):
            alone = model.step(WORDS_NT[row : row + 1, time], own, state)
            torch.testing.assert_close(beams[time].logits_NV[row], alone.logits_NV[0], atol=1e-6, rtol=1e-6)
            torch.testing.assert_close(beams[time].weights_NHS[row], alone.weights_NHS[0])
            state = alone.state


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_what_is_kept_follows_its_rows(positions: str) -> None:
    model = make(settings(positions=positions)).double()
    memory = model.encode(SOURCE_BS)
    state = model.start(memory)
    for time in range(2):
        state = model.step(TARGET_BT[:, time], memory, state).state
    assert not torch.allclose(state.layers[0].keys_BHSA[0], state.layers[0].keys_BHSA[1])
    expected = model.step(TARGET_BT[:, 2], memory, state)
    for moved, rows in ((state.select(torch.tensor([2, 0, 0])), [2, 0, 0]), (state.repeat(2), [0, 0, 1, 1, 2, 2])):
        rows_N = torch.tensor(rows)
        found = model.step(TARGET_BT[rows_N, 2], memory.select(rows_N), moved)
        torch.testing.assert_close(found.logits_NV, expected.logits_NV[rows_N])
        for now, before in zip(found.state.layers, expected.state.layers, strict=True):
            torch.testing.assert_close(now.keys_BHSA, before.keys_BHSA[rows_N])
            torch.testing.assert_close(now.values_BHSA, before.values_BHSA[rows_N])
        assert found.state.position_N.tolist() == [3] * len(rows)


@torch.no_grad()
@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"heads": 1, "layers": 1}, 1),
        ({"heads": 4, "layers": 3}, 12),
        ({"source": "additive"}, 4),
        ({"weights": "sparsemax", "layers": 3}, 6),
        ({"weights": {"kind": "glimpse", "scales": 3}}, 12),
        ({"weights": {"kind": "glimpse", "scales": 1}, "heads": 4}, 8),
    ],
    ids=str,
)
def test_every_head_of_the_weights_has_a_name(options: dict[str, Any], count: int) -> None:
    model = make(settings(**options))
    names, memory = decoder_of(model).head_names, model.encode(SOURCE_BS)
    assert len(set(names)) == len(names) == count
    assert model.teacher_forced(TARGET_BT, memory).weights_BHTS.shape == (3, count, 4, 5)
    assert model.step(TARGET_BT[:, 0], memory, model.start(memory)).weights_NHS.shape == (3, count, 5)
    layers = decoder_of(model).layers
    assert [name for name in names if name.startswith("layer1.")] == list(names[: count // len(layers)])
    assert names[-1] == f"layer{len(layers)}.head{count // len(layers)}"


# ---- dropout


SITES: dict[str, dict[str, tuple[int, int]]] = {
    "embedding": {"encoder": (1, 8), "decoder": (1, 8)},
    "layers": {"encoder": (4, 8), "decoder": (6, 8)},
    "attention": {"encoder": (2, 0), "decoder": (4, 0)},
    "feed_forward": {"encoder": (2, 6), "decoder": (2, 6)},
}
"""For two layers, how many tensors are dropped out and how wide they are; attention's as the mechanism has them."""


def outputs(model: Seq2Seq[Any, Any], side: str) -> Tensor:
    """Returns the output of one side, in the model's mode, without the other side."""
    if side == "encoder":
        states_BSD: Tensor = model.encoder(model.encoder.embed(SOURCE_BS), IS_PAD_BS).states_BSD
        return states_BSD
    torch.manual_seed(3)
    states_BSD = torch.randn(*SOURCE_BS.shape, 8, dtype=torch.float64)
    return decoder_of(model).teacher_forced(TARGET_BT, memory_of(decoder_of(model), states_BSD)).readout_BTR


@torch.no_grad()
@pytest.mark.parametrize("score", ["scaled_dot", "additive"])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
@pytest.mark.parametrize("site", SITES)
def test_each_rate_drops_at_its_own_places(site: str, side: str, score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"score": score, "source": score, "heads": 1}
    dropping = make(settings(dropout={site: 0.5}, **options)).double()
    whole = make(settings(**options)).double()
    expected = outputs(whole, side)
    torch.testing.assert_close(outputs(dropping, side), expected)
    torch.testing.assert_close(outputs(whole.train(), side), expected, atol=1e-6, rtol=1e-6)
    dropped: list[tuple[int, ...]] = []
    draw = Dropout.mask

    def noted(self: Dropout, shape: Any, dtype: torch.dtype, device: torch.device) -> Tensor | None:
        mask = draw(self, shape, dtype, device)
        if mask is not None:
            dropped.append(tuple(shape))
        return mask

    monkeypatch.setattr(Dropout, "mask", noted)
    assert (outputs(dropping.train(), side) - expected).abs().max() > 0.1
    count, width = SITES[site][side]
    assert len(dropped) == count
    if site != "attention":
        length = SOURCE_BS.shape[1] if side == "encoder" else TARGET_BT.shape[1]
        assert set(dropped) == {(3, length, width)}


@torch.no_grad()
def test_dropout_in_a_layer_is_on_what_a_block_adds() -> None:
    """If all of it is dropped, pre-norm layers pass on their input."""
    model = make(settings()).double().train()
    for module in encoder_of(model).layers.modules():
        if module.__class__.__name__ == "Residual":
            module.dropout.forward = torch.zeros_like  # type: ignore[union-attr,method-assign,assignment]
    embedded_BSE = encoder_of(model).embed(SOURCE_BS)
    entered_BSD = encoder_of(model).entrance(embedded_BSE, torch.arange(5)[None])
    torch.testing.assert_close(model.encoder(embedded_BSE, IS_PAD_BS).states_BSD, encoder_of(model).norm(entered_BSD))


# ---- what is drawn


@pytest.mark.parametrize("feed", [TeacherForcing(), ScheduledSampling(1.0), FreeRunning()],
                         ids=["at once", "unrolled", "free running"])  # fmt: skip
@pytest.mark.parametrize("weights", ["hard", {"kind": "glimpse", "scales": 2}], ids=["hard", "glimpse"])
def test_the_choices_of_every_layer_and_head_enter_the_objective(weights: Any, feed: Any) -> None:
    model = make(settings(weights=weights, layers=3)).double().train()
    torch.manual_seed(4)
    loss = token_loss(model, SOURCE_BS, TARGET_BT, feed, training_criterion(model, 0.1))
    torch.manual_seed(4)
    decoded = model.decode(TARGET_BT, model.encode(SOURCE_BS), feed)
    assert len(decoded.sampled) == 3 * 2
    log_p_BTV = model.output(decoded.readout_BTR).log_softmax(-1)
    smoothed_BT = 0.1 * log_p_BTV.mean(-1) + 0.9 * log_p_BTV.gather(2, TARGET_BT[:, :, None])[:, :, 0]
    expected = -smoothed_BT[TARGET_BT != 0].sum().item()
    assert loss.objective.item() != pytest.approx(expected, abs=0.01)
    log_p_BT = log_p_BTV.gather(2, TARGET_BT[:, :, None])[:, :, 0].masked_fill(TARGET_BT == 0, 0.0)
    drawn = {tuple(choice.log_prob_BT.flatten().tolist()) for choice in decoded.sampled}
    assert len(drawn) == 6, "each draws for itself"
    rewarded, _ = reinforce(decoded.sampled, log_p_BT.tolist(), (TARGET_BT == 0).tolist())
    assert loss.objective.item() == pytest.approx(expected + rewarded.item(), rel=1e-5)


def test_what_is_annealed_is_told_the_update_in_every_head() -> None:
    model = make(settings(weights="gumbel", score="additive"))
    model.at_update(40)
    told = [module.update for module in decoder_of(model).modules() if isinstance(module, Attention)]
    assert told == [40] * 8  # two heads in each of two layers, to the source and to the words so far
