"""The comparison of attention mechanisms: what is compared, the budget, going on, what is read from the numbers."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml

from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment
from nmt.attention.registry import SCORES, WEIGHTS
from nmt.core.errors import InputError
from nmt.evaluation.bootstrap import PairedComparison, compare, interval, sentence_counts
from nmt.experiment import load

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import compare_attention  # noqa: E402
from comparison import findings, pictures, report, results, systems  # noqa: E402
from comparison.budget import Budget, Cost, Training  # noqa: E402
from comparison.children import Children, Ended, Stopped  # noqa: E402
from comparison.measure import entropy  # noqa: E402
from comparison.work import Case, Comparison  # noqa: E402

BASE = systems.Base(ROOT / "configs" / "comparison-de-en.yaml")


# ------------------------------------------------------------------------------------------------------------ systems


def test_every_mechanism_of_the_registry_takes_part_once() -> None:
    everything = systems.all_systems()
    assert len({each.key for each in everything}) == len(everything)
    for group, mechanisms in (("scores", SCORES), ("weights", WEIGHTS)):
        assert {each.name for each in everything if each.group == group} >= set(mechanisms)


@pytest.mark.parametrize("config", ["comparison-de-en.yaml", "comparison-multi30k.yaml"])
def test_all_systems_are_available_and_differ(config: str) -> None:
    base = systems.Base(ROOT / "configs" / config)
    resolved = systems.resolve(base, systems.all_systems())
    assert [each.fault for each in resolved if each.fault] == []
    assert {each.system.key for each in resolved if not each.trainable} == {
        "scores/additive", "weights/softmax", "feeding/teacher_forcing", "cells/gru",
    }  # fmt: skip
    experiments = [base.experiment(each.system.overrides) for each in resolved if each.trainable]
    for number, one in enumerate(experiments):
        assert one not in experiments[:number]


def test_what_cannot_be_is_told_and_left_out() -> None:
    system = systems.System("scores", "telepathy", ("model.attention.score=telepathy",))
    (resolved,) = systems.resolve(BASE, [system])
    assert not resolved.trainable
    assert "telepathy" in (resolved.fault or "")


def test_selection() -> None:
    everything = systems.all_systems()
    chosen = systems.Selection(("cells", "scores/dot")).choose(everything)
    assert [each.key for each in chosen] == ["scores/dot", "cells/elman", "cells/gru", "cells/lstm"]
    assert systems.Selection().choose(everything) == list(everything)
    with pytest.raises(InputError, match=r"^--systems dot: is not a system and no group; --list shows them$"):
        systems.Selection(("dot",)).choose(everything)


# ------------------------------------------------------------------------------------------------------------- budget


class Trainings:
    """In place of ``Children``: every start costs 4 s, every update half a second; keeps what it was asked for."""

    def __init__(self, *, stop_at: int | None = None, code: int = 0) -> None:
        self.updates: list[int] = []
        self.stop_at = stop_at
        self.code = code
        self.stopping = False

    def run(self, module: str, arguments: Sequence[str | Path], output: Path) -> Ended:
        assert module == "nmt"
        settings = dict(str(each).split("=", 1) for each in arguments if "=" in str(each))
        updates, run = int(settings["training.stopping.updates"]), Path(settings["run"])
        assert settings["training.validation.every"] == settings["training.feed.schedule.updates"] == str(updates)
        self.updates.append(updates)
        output.write_text("error: on purpose\n")
        if len(self.updates) == self.stop_at:
            self.stopping = True
            return Ended(130, 7.0)
        (run / "checkpoints" / f"step-{updates:08d}").mkdir(parents=True)
        return Ended(self.code, 4.0 + 0.5 * updates)


def training(folder: Path) -> Training:
    return Training(folder, folder / "settings.yaml", ("training.feed.schedule.updates",))


def test_the_budget_is_spent_on_updates(tmp_path: Path) -> None:
    children = Trainings()
    cost = training(tmp_path).train(Budget(minutes=2.0), children)  # type: ignore[arg-type]
    assert children.updates == [5, 35, 232]
    assert (cost.seconds_per_update, cost.fixed_seconds) == pytest.approx((0.5, 4.0))
    assert cost.seconds == pytest.approx(120.0)  # 4 + 232 / 2: the whole budget
    assert cost.complete
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cost.json", "run", "train.log"]
    assert training(tmp_path).train(Budget(minutes=2.0), children) == cost  # type: ignore[arg-type]
    assert len(children.updates) == 3, "what is done is not done again"


def test_an_interrupted_training_goes_on_with_its_number_of_updates(tmp_path: Path) -> None:
    first = Trainings(stop_at=3)
    with pytest.raises(Stopped):
        training(tmp_path).train(Budget(minutes=2.0), first)  # type: ignore[arg-type]
    assert not training(tmp_path).is_done()
    second = Trainings()
    cost = training(tmp_path).train(Budget(minutes=2.0), second)  # type: ignore[arg-type]
    assert second.updates == [232]
    assert cost.starts == (7.0, 120.0)


def test_a_start_that_was_not_made_is_not_counted(tmp_path: Path) -> None:
    children = Children()
    children.interrupt()
    with pytest.raises(Stopped):
        training(tmp_path).train(Budget(None, 10), children)
    assert training(tmp_path).train(Budget(None, 10), Trainings()).starts == (9.0,)  # type: ignore[arg-type]


def test_a_start_that_was_killed_is_known(tmp_path: Path) -> None:
    class Killed(Trainings):
        def run(self, module: str, arguments: Sequence[str | Path], output: Path) -> Ended:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training(tmp_path).train(Budget(None, 10), Killed())  # type: ignore[arg-type]
    cost = training(tmp_path).train(Budget(None, 10), Trainings())  # type: ignore[arg-type]
    assert cost.starts == (None, 9.0)
    assert cost.seconds == 9.0
    assert not cost.complete


def test_a_budget_that_is_too_small_and_a_training_that_fails_are_told(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"--minutes 0.1: pays for 4 updates of 0.50 s after a start of 4 s; give more"
    ):
        training(tmp_path).train(Budget(minutes=0.1), Trainings())  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^training failed with exit code 2: error: on purpose \(see .*train.log\)$"):
        training(tmp_path).train(Budget(None, 10), Trainings(code=2))  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------------- children


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module called ``child`` that a test may write."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "child.py"


def test_cpu_time_is_the_childs_own(module: Path, tmp_path: Path) -> None:
    module.write_text(
        "import sys, time\n"
        "while time.process_time() < 0.4: pass\n"
        "time.sleep(0.5)\n"
        "print('said', *sys.argv[1:])\n"
        "sys.exit(3)\n"
    )
    ended = Children().run("child", ["a", Path("b")], tmp_path / "log")
    assert ended.code == 3
    assert 0.4 <= ended.cpu_seconds < 0.8, "sleeping costs nothing"
    assert (tmp_path / "log").read_text() == "said a b\n"


def test_an_interruption_reaches_each_child_once_and_lets_none_start(module: Path, tmp_path: Path) -> None:
    module.write_text(
        "import pathlib, signal, sys, time\n"
        "place = pathlib.Path(sys.argv[1])\n"
        "signal.signal(signal.SIGTERM, lambda *_: place.with_suffix('.heard').open('a').write('heard '))\n"
        "place.write_text('ready')\n"
        "while not place.with_suffix('.heard').exists(): time.sleep(0.01)\n"
        "time.sleep(0.3)\n"
        "sys.exit(130)\n"
    )
    children, ended = Children(), []
    places = [tmp_path / "one", tmp_path / "two"]

    def start(place: Path) -> None:
        ended.append(children.run("child", [place], tmp_path / "log"))

    threads = [threading.Thread(target=start, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    while not all(place.exists() for place in places):
        time.sleep(0.01)
    children.interrupt()
    for thread in threads:
        thread.join()
    assert [each.code for each in ended] == [130, 130]
    assert [place.with_suffix(".heard").read_text() for place in places] == ["heard "] * 2
    with pytest.raises(Stopped):
        children.run("child", [tmp_path / "three"], tmp_path / "log")
    assert not (tmp_path / "three").exists()


# --------------------------------------------------------------------------------------------------- what is measured


def test_entropy_is_the_mean_over_words_in_bits() -> None:
    def alignment(weights: list[list[float]]) -> Alignment:
        source, target = tuple("abcd"[: len(weights[0])]), tuple("xyz"[: len(weights)])
        return Alignment(source, target, (), np.array(weights))

    pair, single = alignment([[0.5, 0.5, 0.0, 0.0], [0.25] * 4]), alignment([[0.0, 1.0]])
    assert entropy([pair, single]) == pytest.approx((1 + 2 + 0) / 3)
    assert entropy([]) == 0.0


# ------------------------------------------------------------------------------------------------------------- report


def corpus() -> results.Corpus:
    """Random sentences of 4 to 24 words; the references are the sources."""
    draw = random.Random(7)
    lines = [" ".join(f"w{draw.randint(0, 60)}" for _ in range(draw.randint(4, 24))) for _ in range(200)]
    return results.Corpus(lines, lines)


def spoiled(lines: Sequence[str], share: float, *, seed: int, from_words: int = 0) -> list[str]:
    """With a share of the words of sentences of more than so many words replaced."""
    draw = random.Random(seed)
    texts = []
    for line in lines:
        rate = share if len(line.split()) > from_words else 0.1
        texts.append(" ".join("x" if draw.random() < rate else word for word in line.split()))
    return texts


def result(system: systems.System, hypotheses: list[str], *, speed: float = 100.0) -> results.Result:
    lines = corpus()
    bleu, chrf = (sentence_counts(hypotheses, lines.references, metric=metric) for metric in ("bleu", "chrf"))
    return results.Result(
        system=system,
        seeds=(1,),
        bleu=bleu,
        chrf=chrf,
        bleu_estimate=interval(bleu),
        chrf_estimate=interval(chrf),
        bleu_of_seeds=(bleu.score(),),
        greedy_bleu=bleu.score(),
        perplexity=results.Perplexity(5.0, 40.0),
        entropy=None if system.group == "context" else 1.5,
        error_rates={} if system.group == "context" else {"attention": {"grow": 20.0, "argmax": 30.0}},
        speed=results.Speed(1000, 8.0, is_whole=system.group != "context", tokens_per_second=speed),
        parameters=10,
        precision="float32",
        signatures=(bleu.metric.get_signature().format(), chrf.metric.get_signature().format()),
        lengths=results.length_scores(lines, hypotheses, bleu, chrf),
        curve=((1.0, 50.0), (2.0, 20.0)),
    )


@pytest.fixture(scope="module")
def made_up() -> list[results.Result]:
    """A baseline; no attention, which spoils long sentences; a score that is the same, one that is worse but fast."""
    lines = corpus().references
    made = [
        result(systems.System("baseline", "baseline"), spoiled(lines, 0.1, seed=1)),
        result(systems.System("context", "every_step"), spoiled(lines, 0.4, seed=2, from_words=findings.LONG)),
        result(systems.System("scores", "alike"), spoiled(lines, 0.1, seed=3)),
        result(systems.System("scores", "worse"), spoiled(lines, 0.3, seed=4), speed=400.0),
        result(systems.System("weights", "hard"), spoiled(lines, 0.2, seed=5), speed=50.0),
        result(systems.System("feeding", "free_running"), spoiled(lines, 0.2, seed=6)),
    ]
    return results.against_baseline(made, {"scores": "additive", "weights": "softmax"})


def test_the_answers_follow_the_numbers(made_up: list[results.Result]) -> None:
    text = "\n".join(findings.answers(made_up, corpus()))
    baseline, context, alike, worse, hard, _ = made_up
    assert f"`every_step` is the best, with {context.bleu_estimate.value:.1f} BLEU" in text
    assert "So attention helps more on long sentences" in text
    gap = compare(alike.bleu, baseline.bleu)
    assert not gap.significant
    behind = findings.signed(worse.bleu_estimate.value - max(baseline.bleu_estimate.value, alike.bleu_estimate.value))
    assert f"Behind it: `worse` ({behind})." in text
    assert "`worse` trains fastest, 400 target tokens" in text
    lost = baseline.bleu_estimate.value - hard.bleu_estimate.value
    assert f"- `hard` is {lost:.1f} BLEU worse (95 % interval −" in text
    assert "at 0.50 times its training speed; its alignments err by 30.0 % against 30.0 % (argmax)." in text
    assert "- trained by teacher forcing (the baseline): 5.0 and 40.0, a factor of 8.0." in text
    assert "1 of 5 systems cannot be told from the baseline: `scores/alike`." in text


def test_where_attention_helps_everywhere_alike_no_more_is_claimed(made_up: list[results.Result]) -> None:
    evenly = result(systems.System("context", "first_step"), spoiled(corpus().references, 0.3, seed=8))
    text = "\n".join(findings.answers([made_up[0], evenly], corpus()))
    assert "helps more on long sentences:" not in text
    assert "is within noise here" in text or "helps less" in text


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.2, 1.8, "1.0 BLEU better (95 % interval 0.2 to 1.8)"),
        (-2.8, -1.2, "2.0 BLEU worse (95 % interval −2.8 to −1.2)"),
        (-0.5, 0.44, "within noise (0.0 BLEU, 95 % interval −0.5 to 0.4)"),
    ],
    ids=["better", "worse", "noise"],
)
def test_verdict(low: float, high: float, words: str) -> None:
    middle = (low + high) / 2
    assert findings.verdict(PairedComparison(30 + middle, 30, low, high, 0.5)) == words


def test_the_table_has_a_row_for_each_system(made_up: list[results.Result]) -> None:
    head, rule, *rows = [line.strip("| ").split(" | ") for line in report.table(made_up)]
    lines = report.table(made_up)
    assert {line.count("|") for line in lines} == {lines[0].count("|")}
    assert "AER" in head
    assert "AER argmax" in head
    assert len(rule) == len(lines[0].strip("|").split("|"))
    assert len(rows) == len(made_up)
    assert "**additive, softmax**" in lines[2]
    assert "≥ 8.0" in lines[3], "CPU time that is not all known is said to be a bound"
    assert "≈ " in lines[4]
    assert "≈ " not in lines[5]
    buckets = report.length_table(made_up)
    assert len(buckets) == 2 + len(made_up)
    assert buckets[0].startswith("| system | 1-10 words (")
    counts = [int(part.split("(")[1].rstrip(") |")) for part in buckets[0].split("|")[2:-1]]
    assert sum(counts) == len(corpus().sources)


def test_a_budget_that_was_not_met_alike_is_told(made_up: list[results.Result]) -> None:
    conditions = report.Conditions("base.yaml", "8 CPU minutes", (1,), "valid", 40, None)

    def spending(*minutes: float) -> list[results.Result]:
        return [
            dataclasses.replace(each, speed=dataclasses.replace(each.speed, cpu_minutes=spent))
            for each, spent in zip(made_up, minutes, strict=False)
        ]

    assert "really took" not in conditions.text(spending(8.0, 8.4))
    assert "really took 7.2 to 9.5 CPU minutes" in conditions.text(spending(8.0, 9.5, 7.2))


def test_seeds_are_pooled_sentence_by_sentence() -> None:
    lines = corpus().references
    one, two = spoiled(lines, 0.1, seed=1), spoiled(lines, 0.3, seed=2)
    both = results.pooled([sentence_counts(each, lines) for each in (one, two)])
    together = sentence_counts([*one, *two], [*lines, *lines])
    assert both.score() == pytest.approx(together.score())
    assert len(both) == len(lines)


CONDITIONS = report.Conditions("base.yaml", "8 CPU minutes", (1,), "valid", 200, 50)


def test_the_report_goes_between_the_markers_of_a_page(made_up: list[results.Result], tmp_path: Path) -> None:
    missing = [results.Missing(systems.System("weights", "gumbel"), "seed 1: not begun")]
    shown = [pictures.draw_speed(made_up, tmp_path)]
    path = report.write(tmp_path, CONDITIONS, made_up, missing, corpus(), shown)
    assert "- `weights/gumbel`: seed 1: not begun" in path.read_text(encoding="utf-8")
    tree = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert [each["system"] for each in tree["systems"]] == [each.system.key for each in made_up]
    assert tree["systems"][3]["BLEU"]["value"] == made_up[3].bleu_estimate.value

    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text(f"before\n\n{report.MARKER}\nold\n{report.MARKER}\n\nafter\n", encoding="utf-8")
    for _ in range(2):  # what is pasted can be replaced
        text = report.markdown(CONDITIONS, made_up, missing, corpus(), shown, "pictures/")
        report.paste(page, text, [tmp_path / each.file for each in shown])
    pasted = page.read_text(encoding="utf-8")
    assert pasted.startswith(f"before\n\n{report.MARKER}\nEvery system is `base.yaml`")
    assert pasted.endswith(f"{report.MARKER}\n\nafter\n")
    assert "old" not in pasted.split(report.MARKER)[1].split("\n")
    assert (page.parent / "pictures" / "speed.png").exists()
    assert "](pictures/speed.png)" in pasted

    page.write_text("no markers\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"page.md: has 0 lines <!-- comparison -->; the report goes between two"):
        report.check_page(page)


# ----------------------------------------------------------------------------------------------------------- pictures


def png_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def test_pictures_are_drawn(made_up: list[results.Result], tmp_path: Path) -> None:
    pair = Alignment(("ein", "$x_1$"), ("a", "house", "x"), ((0, 0),), np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]))
    gold = [Gold(frozenset({(0, 0)}))]
    drawn = [
        pictures.draw_lengths(made_up, tmp_path),
        pictures.draw_curves(made_up, tmp_path),
        pictures.draw_curves(made_up[:1], tmp_path),
        *pictures.draw_alignments({f"system {number}": [pair] for number in range(7)}, gold, tmp_path),
    ]
    assert [each.file for each in drawn] == ["lengths.png", "curves.png", "curves.png", "alignments-1.png"]
    for each in drawn:
        width, height = png_size(tmp_path / each.file)
        assert width > 200
        assert height > 150


def test_the_pairs_that_are_shown_are_short_and_cross_most() -> None:
    def pair(words: int) -> Alignment:
        return Alignment(("s",) * words, ("t",) * words, (), np.full((words, words), 1 / words))

    straight = Gold(frozenset({(0, 0), (1, 1), (2, 2)}))
    crossed = Gold(frozenset({(0, 2), (1, 1), (2, 0)}))
    pairs = [pair(3), pair(20), pair(3), pair(3)]
    assert pictures.telling_pairs(pairs, [straight, crossed, crossed, Gold()]) == [2, 0]


# -------------------------------------------------------------------------------------------------------- all together


def comparison(folder: Path, *overrides: str, updates: int = 10) -> Comparison:
    return Comparison(folder, dataclasses.replace(BASE, overrides=overrides), Budget(None, updates), "valid", None)


def case(of: Comparison) -> Case:
    return of.case(systems.System("scores", "dot", ("model.attention.score=dot",)), 3)


def test_settings_are_kept_and_others_refused(tmp_path: Path) -> None:
    begun = case(comparison(tmp_path))
    begun.settle()
    settings = load(begun.training.settings)
    assert (settings.seed, settings.model.attention.score.kind) == (3, "dot")
    assert settings.folder == tmp_path / "scores" / "dot" / "seed-3" / "run"
    case(comparison(tmp_path, "model.embedding.size=64")).settle()  # nothing was trained yet
    begun.settle()
    Cost(Budget(None, 10), 10).save(begun.training.folder / "cost.json")
    begun.settle()
    what = "was begun with other model.embedding.size; delete it, or give another --output$"
    with pytest.raises(InputError, match=what):
        case(comparison(tmp_path, "model.embedding.size=64")).settle()
    with pytest.raises(InputError, match=r"was begun with other budget \(10 updates\); delete it"):
        case(comparison(tmp_path, updates=11)).settle()


def test_bad_arguments_are_told_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments, message in (
        (["--config", str(tmp_path / "none.yaml")], "none.yaml: no such file"),
        (
            ["--config", str(BASE.config), "--minutes", "1", "--updates", "1"],
            "--minutes and --updates: give one of them",
        ),
        (["--config", str(BASE.config), "--systems", "dot"], "--systems dot: is not a system"),
        (["--config", str(BASE.config), "--docs", str(tmp_path / "page.md")], "page.md: cannot be read"),
        (["--config", str(BASE.config), "--output", str(tmp_path), "--report-only"], "no system is measured on valid"),
    ):
        assert compare_attention.main(arguments) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert message in error


@pytest.mark.slow
def test_a_comparison_from_the_command_line(tmp_path: Path) -> None:
    """Two systems, two updates each, twice: the second time only the report is made again."""
    tree = yaml.safe_load(BASE.config.read_text(encoding="utf-8").replace("4e-3", "0.004"))
    for part, count in (("train", 60), ("valid", 12)):
        for side in ("de", "en"):
            lines = (ROOT / "data" / "de-en" / f"{part}.{side}").read_text(encoding="utf-8").split("\n")[:count]
            (tmp_path / f"{part}.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    tree["data"] = {part: {"source": f"{part}.de", "target": f"{part}.en"} for part in ("train", "valid")}
    tree["data"]["subwords"] = {"kind": "bpe", "size": 200, "joint": True}
    tree["run"] = "out"
    tree["training"]["log_every"] = 1
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    gold = (ROOT / "data" / "de-en" / "valid.align").read_text(encoding="utf-8").split("\n")[:12]
    (tmp_path / "gold").write_text("".join(f"{line}\n" for line in gold), encoding="utf-8")
    command = [
        sys.executable, ROOT / "scripts" / "compare_attention.py", "--config", "base.yaml", "--updates", "2",
        "--systems", "baseline,context/every_step", "--jobs", "2", "--gold", "valid.de", "valid.en", "gold",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "out/comparison.md\n"
    tree = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert [each["system"] for each in tree["systems"]] == ["baseline", "context/every_step"]
    baseline, without = tree["systems"]
    assert 0 < baseline["alignment_error_rate"]["attention"]["grow"] <= 100
    assert baseline["entropy_bits"] > 0
    assert without["entropy_bits"] is None
    assert baseline["updates"] == 2
    made = sorted((tmp_path / "out").rglob("model.safetensors"))
    assert len(made) == 2
    times = [path.stat().st_mtime_ns for path in made]

    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert [path.stat().st_mtime_ns for path in made] == times
    assert json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8")) == tree
    listed = subprocess.run([*command, "--list"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in listed.splitlines()] == ["baseline", "context/every_step"]
    assert all("seed 1 done" in line for line in listed.splitlines())


def test_names_beside_points_keep_apart_and_near() -> None:
    """Against every arrangement on a grid: none that keeps the gaps is nearer."""
    for heights in ([5.0, 5.0, 5.0], [9.0, 4.0, 3.5], [6.0, 5.5, 1.0], [8.0, 4.0, 0.0]):
        found = pictures._spread(heights, 1.0)
        assert all(upper - lower >= 1.0 - 1e-9 for upper, lower in itertools.pairwise(found))
        grid = [[height + 0.25 * step for step in range(-8, 9)] for height in heights]
        apart = [each for each in itertools.product(*grid) if each[0] - each[1] >= 1 <= each[1] - each[2]]
        nearest = min(sum((a - b) ** 2 for a, b in zip(each, heights, strict=True)) for each in apart)
        assert sum((a - b) ** 2 for a, b in zip(found, heights, strict=True)) <= nearest + 1e-9
