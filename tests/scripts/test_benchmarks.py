"""Every benchmark that runs within seconds, on a tiny run and a few lines: its figures, and how they hang together."""

from __future__ import annotations

import gzip
import importlib
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.data.config import SubwordsConfig
from tests.fuzz.readers import write_pair_filter
from tests.scripts.conftest import ROOT, figures
from tests.workflows.runs import Command, sentences

Run = Callable[..., dict[str, float]]
slow = pytest.mark.slow


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_script: Command) -> Run:
    """Runs a script in an empty folder; returns the figures that it prints. {t} is the folder of the tiny run."""

    def run(script: str, arguments: str, error: str = "") -> dict[str, float]:
        monkeypatch.chdir(tmp_path)
        command = arguments.format(t=trained, data=ROOT / "data" / "de-en")
        done = run_script(importlib.import_module(script), *shlex.split(command))
        assert done.code == (2 if error else 0)
        assert done.stderr.endswith(error)
        return figures(done.stdout)

    return run


def each(*parts: str, rest: tuple[str, ...]) -> list[str]:
    return [f"{part}{end}" for part in parts for end in rest]


SIGNS = ("unlinked words", "best weight of each word", "nll", "length |z|", "nll + z² / 2")
PRECISIONS = each(*(f"average precision by {sign}" for sign in SIGNS), rest=("", ", swapped alone", ", dropped alone"))
FILTERS = ("filter", "suspects", "suspects, nll alone", "suspects, |z| alone")
SORTS = each(*FILTERS, rest=(": wrong partners", ": dropped halves", ": copied sources"))
DROPPED = each("right", "wrong partners", "halves", "copies", "swapped", rest=(": dropped",))


@pytest.mark.parametrize(
    ("script", "arguments", "shares"),
    [
        ("benchmark_suspects", "{t}/run {t}/train.de {t}/train.en --pairs 40", PRECISIONS),
        ("benchmark_filter", "a.filter {t}/test.de {t}/test.en --model {t}/run", SORTS),
        ("benchmark_filter", "plant a.de a.en --pairs 300 --options=--quiet", DROPPED),
    ],
    ids=["suspects", "filter", "planted"],
)
def test_shares_are_printed(script: str, arguments: str, shares: list[str], run: Run, tmp_path: Path) -> None:
    write_pair_filter(tmp_path / "a.filter", sentences(60, seed=1), SubwordsConfig(size=38))
    for side, name in enumerate(("a.de", "a.en")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in sentences(400, seed=3)), encoding="utf-8")
    figures = run(script, arguments)
    assert all(0 <= figures[share] <= 1 for share in shares)
    assert max(figures.values()) > 0
    if script == "benchmark_suspects":
        assert all(figures[share] for share in shares)
        assert figures["copied: marked pairs"] == 0


def test_too_few_pairs_to_spoil_are_refused(run: Run) -> None:
    error = "\nerror: 5 pairs are too few to spoil 5 % of them twice; give more lines or --pairs\n"
    run("benchmark_suspects", "{t}/run {t}/train.de {t}/train.en --pairs 5", error)


def test_a_glossary_makes_terms_appear(run: Run) -> None:
    figures = run("benchmark_glossary", "{t}/run {t}/test.de {t}/test.en {t}/train.de {t}/train.en --max-loss 100,1")
    assert figures["occurrences"] >= figures["terms"] > 0
    assert figures["max_loss 100: term recall"] > figures["without: term recall"]
    least, most = (figures[f"max_loss 100: gain in BLEU, {end}"] for end in ("least", "most"))
    assert least <= figures["max_loss 100: BLEU"] - figures["without: BLEU"] <= most
    assert {*each("without", "max_loss 1", rest=(": BLEU", ": time"))} <= figures.keys()


def test_lines_of_several_sentences_are_read_in_each_way(
    run: Run, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = importlib.import_module("benchmark_sentences")
    lines = ["Hund und Katze.", "Eins zwei. Drei Hund.", "Zwei Hund."]
    (tmp_path / "x.de").write_text("".join(f"{line}\n" for line in [*lines, "Grün."]))
    (tmp_path / "x.en").write_text("dog and cat.\nOne two. Three dog.\ntwo dog.\nGreen.\n")
    read: dict[str, list[str]] = {}
    translated = script.translated

    def noted(model: str, lines: list[str], way: str) -> list[str]:
        read[way] = [*read.get(way, []), *lines]
        return list(translated(model, lines, way))

    monkeypatch.setattr(script, "translated", noted)
    figures = run("benchmark_sentences", "{t}/run x.de x.en --lines 3")
    ways = ("default", "document", "whole")
    assert list(figures) == [*(f"{n} in a line, {way}" for n in (1, 2) for way in ways), "lines that splitting changes"]
    assert read == {way: [*lines, "Hund und Katze. Eins zwei. Drei Hund."] for way in ways}
    assert figures["lines that splitting changes"] == 1
    default, document, whole = (translated(str(trained / "run"), ["Eins zwei. Drei Hund."], way) for way in ways)
    assert default == document != whole


def test_derivatives_are_counted_and_drawn(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_script: Command
) -> None:
    forgetting = importlib.import_module("forgetting")
    monkeypatch.setattr(forgetting, "FEW", 1)
    files = [trained / "test.de", trained / "test.en"]
    options = ["--source", files[0], "--target", files[1], "--by", "path", "--output", tmp_path / "forgetting.svg"]
    rows = run_script(forgetting, trained / "run", *options).stdout.splitlines()
    assert rows[0].split() == ["distance", str(trained / "run")]
    counts = sum(int(row.split()[-1].replace(",", "")) for row in rows[1:-1])
    encode = forgetting.load_trained(str(trained / "run"), precision="float32").tokenizers.source.encode
    pairs = zip(*(file.read_text().splitlines() for file in files), strict=True)
    assert counts == sum(len(encode(source)) * len(encode(target)) for source, target in pairs)
    assert rows[-1].startswith("per step")
    assert "recurrent steps from x to y" in (tmp_path / "forgetting.svg").read_text(encoding="utf-8")


@slow
def test_augmented_text_is_compared_with_a_baseline(run: Run, trained: Path, tmp_path: Path) -> None:
    for name, of in (("train", "train"), ("val", "valid")):
        for side in ("de", "en"):
            (tmp_path / f"{name}.{side}.gz").write_bytes(gzip.compress((trained / f"{of}.{side}").read_bytes()))
            (tmp_path / f"{of}.{side}").write_bytes((trained / f"{of}.{side}").read_bytes())
    options = "--corpus . --config {t}/config.yaml --pairs 40 --updates 2 --subwords 60"
    figures = run("benchmark_augment", f"{options} --out out -- --precision float32")
    before, after, gain = (figures[f"augment: BLEU, {which}"] for which in ("baseline", "augmented", "gain"))
    assert gain == pytest.approx(after - before, abs=0.05)
    assert figures["augment: all of it"] > 0
    parts = ((tmp_path / "out" / f"{name}.en").read_text() for name in ("train", "mono"))
    assert "".join(parts) == (trained / "train.en").read_text()


@slow
def test_aligners_are_compared_with_eflomal(run: Run) -> None:
    pytest.importorskip("eflomal", reason="needs the extra eflomal")
    options = "--gold {data}/valid.de {data}/valid.en {data}/valid.align --pairs 300 --rounds 1 --threads 1"
    figures = run("benchmark_alignment", f"{{data}}/train.de {{data}}/train.en {options}")
    for unit, suffix in (("seconds", ""), ("processor_seconds", ", processor")):
        learning, aligning, both = (
            figures[f"nmt (1 threads): {what}{suffix}"] for what in ("learning", "aligning", "learning and aligning")
        )
        assert both == pytest.approx(learning + aligning, rel=0.01)
        for what, ours in (("aligning", aligning), ("learning and aligning", both)):
            ratio = figures[f"nmt (1 threads): {what}, times as fast as eflomal, {unit}"]
            assert ratio == pytest.approx(figures[f"eflomal: learning and aligning{suffix}"] / ours, rel=0.01)
    for name in ("eflomal", "nmt, all granularities", "nmt, mean of granularities 1 to 2"):
        assert all(0 < figures[f"{name}, {way}: AER"] < 60 for way in ("forward", "backward", "joined")), name
    assert figures["nmt (1 threads): aligning, memory"] > 50
    assert 0 < figures["eflomal: learning and aligning, memory of its own programs"] < 50  # PyTorch alone is more


@slow
def test_speed_and_memory_are_printed(run: Run) -> None:
    assert run("benchmark_start", "{t}/run --rounds 1")["nmt, auto: first sentence, as much as the import"] > 0
    figures = run("benchmark_translation_memory", "{t}/run {t}/test.de --lines 10 --lines 20")
    assert figures["20 lines: memory as much as for 10"] > 0
