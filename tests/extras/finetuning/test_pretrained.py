"""Embeddings that start from word vectors."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from nmt.core.errors import InputError
from nmt.experiment import Experiment, load
from nmt.extras.finetuning.pretrained import fill_rows, read_vectors
from nmt.translator.loading import load_trained
from nmt.workflows.info import inspect
from nmt.workflows.train import train
from tests.workflows.runs import WORDS, assert_same_bits

Arrays = dict[str, np.ndarray[Any, Any]]

TABLES = {side: f"{module}.embedding.table.weight" for side, module in (("source", "encoder"), ("target", "decoder"))}

WORDS_OF = {"source": list(WORDS), "target": list(WORDS.values())}


def vectors(tokens: list[str], width: int, seed: int = 1) -> dict[str, list[float]]:
    draw = np.random.default_rng(seed)
    return {token: [round(float(x), 4) for x in draw.normal(size=width)] for token in tokens}


def write(path: Path, table: dict[str, list[float]], *, header: bool = True) -> Path:
    width = len(next(iter(table.values())))
    lines = [f"{len(table)} {width}"] * header
    lines += [f"{token} {' '.join(map(str, values))} " for token, values in table.items()]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


# ------------------------------------------------------------------------------------------------- reading the format


def plain(data: bytes, pieces: list[str], width: int) -> dict[int, list[float]]:
    """The same in plain loops, with the whole file in memory."""
    lines = data.decode("utf-8", "replace").split("\n")[:-1]
    if lines[0].split() == lines[0].split(" ") and len(lines[0].split(" ")) == 2:
        del lines[0]
    table: dict[str, list[float]] = {}
    for line in lines:
        token, *numbers = line.strip(" \r").split(" ")
        assert len(numbers) == width
        table.setdefault(token, [float(number) for number in numbers])
    found = {}
    for row, piece in enumerate(pieces):
        for spelling in (piece, piece.removeprefix("\u2581")):
            if spelling in table:
                found[row] = table[spelling]
                break
    return found


@pytest.mark.parametrize("form", ["header", "no header", "gz", "crlf", "bom"])
def test_rows_get_the_vectors_of_their_tokens(tmp_path: Path, form: str) -> None:
    """Duplicates, bytes that are not UTF-8, a token with a no-break space, and a piece that comes after its word."""
    table = vectors(["Hund", "und", "\u2581und", "a\u00a0b", "x", "Ärger", "s", "5"], 3)
    path = write(tmp_path / "vectors", table, header=form != "no header")
    data = path.read_bytes() + b"und 9 9 9\nb\xffd 1 2 3\nlast -0.0 1e-3 2"
    data = {"crlf": data.replace(b"\n", b"\r\n"), "bom": b"\xef\xbb\xbf" + data}.get(form, data)
    path.write_bytes(gzip.compress(data) if form == "gz" else data)
    pieces = ["<pad>", *["▁Hund", "▁und", "und", "▁", "▁x", "Ärger", "nichts", "s"], "a\u00a0b", "last"]
    weight_VD = torch.full((len(pieces), 3), 7.0)
    found_V = fill_rows(weight_VD, pieces, path, range(1, len(pieces)))
    expected = plain(data.removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"") + b"\n", pieces, 3)
    assert np.flatnonzero(found_V).tolist() == sorted(expected) == [1, 2, 3, 5, 6, 8, 9, 10]
    for row in range(len(pieces)):
        assert torch.equal(weight_VD[row], torch.tensor(expected.get(row, [7.0] * 3))), pieces[row]
    assert table["\u2581und"] != table["und"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"3 300\na 1 2\n", "1: needs a token and 2 numbers (embedding.size), not 300"),
        (b"a 1 2 3\n", "1: needs a token and 2 numbers (embedding.size), not 3"),
        (b"1 2\na 1 2\nb 1\n", "3: needs a token and 2 numbers (embedding.size), not 1"),
        (b"a 1 2\n\nb 1 2\n", "2: needs a token and 2 numbers (embedding.size), not 0"),
        (b"c 1 2\n 1 2\n", "2: needs a token and 2 numbers (embedding.size), not 1"),
        (b"a 1 x\n", "1: expected 2 finite numbers after the token"),
        (b"b 1 2\na 1 nan\n", "2: expected 2 finite numbers after the token"),
        (b"a 1 1e39\n", "1: expected 2 finite numbers after the token"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "v").write_bytes(data)
    with pytest.raises(InputError) as refused:
        list(read_vectors(tmp_path / "v", {b"a"}, 2))
    assert str(refused.value) == f"{tmp_path / 'v'}:{message}"


def test_spaces_and_tabs_may_be_several(tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(b"a  1 2 \nb\t3\t4\n")
    read = [(token, vector_D.tolist()) for token, vector_D in read_vectors(tmp_path / "v", {b"a", b"b"}, 2)]
    assert read == [(b"a", [1.0, 2.0]), (b"b", [3.0, 4.0])]


# ---------------------------------------------------------------------------------------------------------- trainings


def experiment(folder: Path, *overrides: str, run: str = "run") -> Experiment:
    shared = ["data.subwords={kind: word, joint: false}", "model.embedding.size=4", "data.valid=null"]
    shared += ["training.optimizer.weight_decay=0.1", "training.ema=0.9", f"run={folder / run}"]
    return load(folder / "config.yaml", [*shared, *overrides], with_corpora=True)


def weights(run: Path, name: str = "model") -> Arrays:
    return safetensors.numpy.load_file(run / "latest" / f"{name}.safetensors")


@pytest.fixture
def corpus(here: Path) -> Path:
    for side, words in WORDS_OF.items():
        write(here / f"{side}.vec", vectors([f"{word}{end}" for word in words for end in ("", ".")], 4))
    return here


def expected_rows(run: Path, folder: Path, side: str) -> dict[int, list[float]]:
    pieces = load_trained(run, device="cpu").tokenizers
    tokenizer = pieces.source if side == "source" else pieces.target
    return plain((folder / f"{side}.vec").read_bytes(), tokenizer.pieces(range(tokenizer.size)), 4)


def test_frozen_tables_stay_to_the_bit(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frozen = "model.embedding.pretrained={source: source.vec, frozen: true}"
    run = train(experiment(corpus, frozen), precision="float32")
    told = capsys.readouterr().err
    assert "vectors    source: for 14 of 14 tokens, 100.0% of the running tokens, from source.vec, frozen" in told
    model, training, table = weights(run), weights(run, "training"), TABLES["source"]
    rows = expected_rows(run, corpus, "source")
    assert len(rows) == 14
    for row, values in rows.items():
        for weight in (model[table], training[f"weights/{table}"]):
            assert weight[row].tobytes() == np.array(values, np.float32).tobytes()
    states = {name.split("/")[1] for name in training if name.startswith("optimizer/")}
    assert states == model.keys() - {table}
    info = inspect(str(run))
    assert info.parameters == sum(weight.size for weight in model.values())
    # taken up again without the file, to the same end as in one go
    (corpus / "source.vec").rename(corpus / "away.vec")
    more = "training.stopping.updates=4", frozen
    train(experiment(corpus, *more), precision="float32")
    assert "vectors" not in capsys.readouterr().err
    assert np.array_equal(weights(run)[table], model[table])
    (corpus / "away.vec").rename(corpus / "source.vec")
    whole = train(experiment(corpus, *more, run="whole"), precision="float32")
    assert_same_bits(run / "latest", whole / "latest", "model.safetensors")


def test_tuned_vectors_are_where_training_starts(corpus: Path) -> None:
    both = "model.embedding.pretrained={source: source.vec, target: target.vec}"
    slow = ("training.optimizer.learning_rate=1e-6", "training.stopping.updates=1")
    run = train(experiment(corpus, both, *slow), precision="float32")
    model = weights(run)
    for side, table in TABLES.items():
        for row, values in expected_rows(run, corpus, side).items():
            assert not np.array_equal(model[table][row], np.array(values, np.float32))
            assert np.allclose(model[table][row], values, atol=2e-6)


def test_one_table_of_both_sides_takes_from_source_first(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = vectors(["eins", "one", "dog"], 4, seed=5)
    write(corpus / "source.vec", {token: both[token] for token in ("eins", "one")})
    write(corpus / "target.vec", {"one": [9.0] * 4, "dog": both["dog"]})
    joint = ("data.subwords.joint=true", "data.prepared=joint", "model.embedding.tie=all", "model.decoder.size=4")
    pretrained = "model.embedding.pretrained={source: source.vec, target: target.vec, frozen: true}"
    run = train(experiment(corpus, *joint, pretrained), precision="float32")
    tokenizer = load_trained(run, device="cpu").tokenizers.source
    model, training = weights(run), weights(run, "training")
    assert not {name for name in training if name.startswith("optimizer/") and "embedding" in name}
    for token, values in both.items():
        (row,) = tokenizer.encode(token)
        assert model[TABLES["source"]][row].tolist() == np.array(values, np.float32).tolist()
    told = capsys.readouterr().err
    assert "source: for 2 of" in told
    assert "target: for 3 of" in told


def test_faults_are_one_line_each(corpus: Path) -> None:
    write(corpus / "other.vec", vectors(["chien", "</s>"], 4))
    strange = "other.vec: has no vector for any target token; is it of that language, and its case?"
    for pretrained, message in (("none.vec", "none.vec: no such file"), ("{target: other.vec}", strange)):
        with pytest.raises(InputError) as error:
            train(experiment(corpus, f"model.embedding.pretrained={pretrained}"), precision="float32")
        assert str(error.value) == message
    assert not (corpus / "run" / "config.yaml").exists()


def test_fine_tuning_may_thaw_what_was_frozen(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frozen = "model.embedding.pretrained={source: source.vec, frozen: true}"
    old = train(experiment(corpus, frozen), precision="float32")
    (corpus / "source.vec").unlink()
    capsys.readouterr()
    origin = (f"training.start_from={old}", f"data.subwords={{model: {old}, joint: false}}")
    tuned = experiment(corpus, *origin, "model.embedding.pretrained={target: gone.vec}", run="new")
    new = train(tuned, precision="float32")
    assert "vectors" not in capsys.readouterr().err
    before, after = weights(old)[TABLES["source"]], weights(new)[TABLES["source"]]
    assert not np.array_equal(before, after)
    assert np.allclose(before, after, atol=0.1)
