"""Gates and states against the cells' equations in plain loops and against the model's own states; their pictures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.core.errors import InputError
from nmt.extras.pages.states.trace import CELL, HIDDEN, Trace, _steps, chosen_layer, components
from scripts.make_golden_run import copy
from tests.models.variants import TRANSFORMER, WIRINGS, make, tree
from tests.workflows.runs import Command

SOURCE, TARGET = torch.tensor([[4, 5, 1, 4, 3]]), torch.tensor([[5, 1, 4, 3]])


def plain(kind: str, rnn: Any, x_TE: Tensor) -> dict[str, Tensor]:
    """The equations of PyTorch's documentation of nn.RNN, nn.GRU and nn.LSTM, unit by unit."""
    W, U, b, c = (each.detach().double() for each in rnn.parameters())
    D = U.shape[1]
    h, memory = torch.zeros(D, dtype=torch.float64), torch.zeros(D, dtype=torch.float64)
    found = []
    for x in x_TE.double():
        wx, uh = W @ x + b, U @ h + c
        gates = [1 / (1 + torch.exp(-gate)) for gate in (wx + uh).split(D)]
        if kind == "elman":
            now = {HIDDEN: torch.tanh(wx + uh)}
        elif kind == "gru":
            r, z, _ = gates
            n = torch.tanh(wx[2 * D :] + r * uh[2 * D :])
            now = {"reset gate r": r, "update gate z": z, HIDDEN: (1 - z) * n + z * h}
        else:
            i, f, _, o = gates
            memory = f * memory + i * torch.tanh((wx + uh)[2 * D : 3 * D])
            now = {"input gate i": i, "forget gate f": f, "output gate o": o, CELL: memory, HIDDEN: o * memory.tanh()}
        h = now[HIDDEN]
        found.append(now)
    return {name: torch.stack([now[name] for now in found]) for name in found[0]}


@pytest.mark.parametrize("kind", ["elman", "gru", "lstm"])
@torch.no_grad()
def test_gates_and_states_of_an_encoder_are_those_of_plain_loops_and_of_the_model(kind: str) -> None:
    model: Any = make(tree(encoder={"cell": kind, "layers": 2}))
    embedded_1SE = model.encoder.embed(SOURCE)
    own = model.encoder(embedded_1SE, SOURCE == 0).states_BSD[0].chunk(2, dim=1)
    below_SE = embedded_1SE[0]
    for layer in (1, 2):
        states = []
        for direction in ("forward", "backward"):
            stack, index = chosen_layer(model, "encoder", layer, direction)  # type: ignore[arg-type, misc]
            steps = _steps(model, stack, index, SOURCE, None)
            expected = plain(kind, stack.rnns[0], below_SE if direction == "forward" else below_SE.flip(0))
            assert list(steps[0]) == list(expected)
            for name, value_SD in expected.items():
                found_SD = torch.cat([step[name] for step in steps])
                torch.testing.assert_close(found_SD.double(), value_SD, atol=1e-5, rtol=1e-4)
            hidden_SD = torch.cat([step[HIDDEN] for step in steps])
            states.append(hidden_SD if direction == "forward" else hidden_SD.flip(0))
        below_SE = torch.cat(states, dim=1)
    for found, half in zip(states, own, strict=True):
        torch.testing.assert_close(found, half, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("wiring", [*WIRINGS, "none"])
@torch.no_grad()
def test_states_of_a_decoder_are_the_models_own_and_follow_from_the_gates(wiring: str) -> None:
    attention: dict[str, Any] = {"score": "none", "context": "every_step"} if wiring == "none" else {}
    model = make(tree(decoder={"cell": "lstm", "layers": 2, **WIRINGS.get(wiring, {})}, **attention))
    cell = model.decoder.stack.cell
    memory = model.encode(SOURCE)
    for layer in (1, 2):
        stack, index = chosen_layer(model, "decoder", layer, "forward")  # type: ignore[misc]
        steps = _steps(model, stack, index, SOURCE, TARGET)
        state, token = model.start(memory), model.first_token(1, SOURCE.device)
        assert len(steps) == TARGET.shape[1]
        for step, gold in zip(steps, TARGET.unbind(dim=1), strict=True):
            before = state.stack.cell[index]
            state, token = model.step(token, memory, state).state, gold
            torch.testing.assert_close(step[HIDDEN], state.stack.hidden[index])
            torch.testing.assert_close(step["output gate o"] * step[CELL].tanh(), step[HIDDEN])
            candidate = (step[CELL] - step["forget gate f"] * before) / step["input gate i"]
            assert candidate.abs().max() <= 1 + 1e-4
    assert model.decoder.stack.cell is cell


@pytest.mark.parametrize("side", ["encoder", "decoder"])
@torch.no_grad()
def test_of_several_cells_in_a_step_the_last_one_is_shown(side: Any) -> None:
    deep = {"cell": "gru", "layers": 2, "transitions": 2, "layer_norm": True}
    model = make(tree(encoder=deep, decoder={**deep, **WIRINGS["parallel"]}))
    stack, index = chosen_layer(model, side, 2, "forward")  # type: ignore[misc]
    steps = _steps(model, stack, index, SOURCE, TARGET if side == "decoder" else None)
    hidden_SD = torch.cat([step[HIDDEN] for step in steps])
    if side == "encoder":
        expected_SD = model.encode(SOURCE).attention.values_BSV[0].chunk(2, dim=1)[0]
    else:
        state = model.start(memory := model.encode(SOURCE))
        expected = []
        for token in [model.first_token(1, SOURCE.device), *TARGET.unbind(dim=1)][:-1]:
            state = model.step(token, memory, state).state
            expected.append(state.stack.hidden[index][0])
        expected_SD = torch.stack(expected)
    torch.testing.assert_close(hidden_SD, expected_SD)


def test_layers_and_directions_that_are_not_there() -> None:
    model = make(tree(encoder={"bidirectional": False}))
    for arguments, message in (
        (("encoder", 2, "forward"), "--layer 2: the encoder has 1 recurrent layers; choose one, or leave it out"),
        (("encoder", None, "backward"), "--direction backward: the encoder has no such layers; leave it out"),
        (("decoder", None, "backward"), "--direction backward: the decoder has no such layers; leave it out"),
    ):
        with pytest.raises(InputError, match=message):
            chosen_layer(model, *arguments)  # type: ignore[arg-type]
    transformer = make(tree(encoder=TRANSFORMER, decoder=TRANSFORMER, score="scaled_dot"))
    assert chosen_layer(transformer, "encoder", None, "forward") is None


def test_principal_components_are_the_eigenvectors_of_the_covariance() -> None:
    states = [np.random.default_rng(seed).normal(size=(4 + seed, 6)).astype(np.float32) for seed in range(3)]
    planes, shares = components([Trace((), {HIDDEN: each}) for each in states])
    assert [len(each) for each in planes] == [4, 5, 6]
    all_ND = np.concatenate(states)
    eigenvalue_D, vector_DD = np.linalg.eigh(np.cov(all_ND.T))
    assert shares == pytest.approx((eigenvalue_D[:-3:-1] / eigenvalue_D.sum()).tolist())
    expected_N2 = np.abs((all_ND - all_ND.mean(axis=0)) @ vector_DD[:, :-3:-1])
    np.testing.assert_allclose(np.abs(np.concatenate(planes)), expected_N2, atol=1e-5)
    with pytest.raises(InputError, match="2 states make no plane"):
        components([Trace((), {HIDDEN: np.zeros((2, 6), np.float32)})])


@pytest.fixture
def states(run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `nmt states` in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s").write_text("Hund und Katze.\n<b>zwei Hund</b>\n日本 $x_1$\n")
    (tmp_path / "t").write_text("dog and cat.\n<b>two dog</b>\nx\n")
    return partial(run, "states")


def test_pictures_by_the_command(trained: Path, states: Command, tmp_path: Path) -> None:
    run = (trained / "run", "-s", "s")
    for name in ("a.svg", "b.svg"):
        assert states(*run, "-o", name, "--line", "3", "--units", "5").code == 0
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")
    for name in ("input gate i", "forget gate f", "output gate o", CELL, HIDDEN):
        assert text.count(f">{name}</text>") == 1
    assert text.count("<image") >= 5
    assert states(*run, "-o", "c.png", "--curves").code == 0
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    done = states(*run, "-t", "t", "--side", "decoder", "--layer", "1", "-o", "d.html")
    assert (done.code, done.stdout) == (0, ""), done.stderr
    page = (tmp_path / "d.html").read_text(encoding="utf-8")
    assert (page.count("<svg"), page.count("<h2>"), page.count("<b>")) == (4, 4, 0)
    assert "% of the variance" in page
    for arguments, message in (
        ("-s s -o x.pdf", "--output x.pdf: name a file that ends in .svg, .png or .html"),
        ("-s s -o x.svg --line 4", "s: has no line 4"),
        ("-s s -o no/x.svg", "--output no/x.svg: cannot be written: No such file or directory"),
        ("-s s -o x.svg --side decoder", "--side decoder: its states follow given translations; give --target as well"),
        ("-o x.svg", "--source and --output: give both, the sentences and the picture"),
    ):
        assert states(trained / "run", *arguments.split()).error == message


def test_a_transformer_has_curves_and_no_gates(states: Command, tmp_path: Path) -> None:
    copy(Path(__file__).parents[2] / "golden" / "format-1" / "transformer", tmp_path / "golden")
    run = ("golden/run", "-s", "s", "-t", "t")
    for side in ("encoder", "decoder"):
        assert states(*run, "--side", side, "--curves", "-o", f"{side}.svg").code == 0
        no_gates = f"its {side} is a Transformer, which has no gates; add --curves"
        assert states(*run, "--side", side, "-o", "x.svg").error.endswith(no_gates)
