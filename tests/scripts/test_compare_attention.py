"""The comparison of systems: which they are, the budget, what is kept, and the figures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import compare_attention
import pytest
import sacrebleu
from compare_attention import Base, Budget, Case, System, read_systems, systems

from nmt.attention.registry import SCORES, WEIGHTS
from nmt.core.errors import InputError
from nmt.data.corpus import read_lines
from nmt.experiment import load
from tests.scripts.conftest import ROOT

CONFIG = ROOT / "configs" / "comparison-de-en.yaml"


def test_every_mechanism_of_the_registry_takes_part_once() -> None:
    names = [each.name for each in systems()]
    assert len({*names}) == len(names)
    assert {f"scores/{kind}" for kind in SCORES} | {f"weights/{kind}" for kind in WEIGHTS} <= {*names}


@pytest.mark.parametrize("config", ["comparison-de-en.yaml", "comparison-multi30k.yaml"])
def test_all_systems_are_available_and_differ(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    path = ROOT / "configs" / config
    same = {each.name for each in systems() if not each.differs(path, ())}
    assert same == {"baseline", "scores/additive", "weights/softmax", "cells/gru"}
    experiments = [load(path, each.overrides) for each in systems() if each.name not in same]
    for number, one in enumerate(experiments):
        assert one not in experiments[:number]


def test_the_budget_is_spent_on_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start costs 4 s, each update half a second."""
    commands: list[dict[str, str]] = []

    def run(self: Case, *arguments: str | Path) -> float:
        settings = dict(str(each).removeprefix("--set=").split("=", 1) for each in arguments if "=" in str(each))
        commands.append(settings)
        if "--measure" in arguments:
            (self.folder / "valid").mkdir()
            (self.folder / "valid" / "figures.json").touch()
            return 0.0
        updates = int(settings["training.stopping.updates"])
        (Path(settings["run"]) / "checkpoints" / f"step-{updates:08d}").mkdir(parents=True)
        return 4.0 + 0.5 * updates

    monkeypatch.setattr(Case, "_run", run)
    base = Base(CONFIG, (), Budget(2.0, None), tmp_path, validations=4)
    case = Case(base, System("x", ("data.subwords.size=90",), ("training.feed.schedule.updates",)), 7)
    for _ in range(2):  # what is done is not done again
        case.work("valid", ())
    assert [each.get("training.stopping.updates") for each in commands] == ["5", "35", "232", None]
    assert commands[2]["training.feed.schedule.updates"] == "232"
    assert commands[2]["seed"] == "7"
    assert [each["training.validation.every"] for each in commands[:3]] == ["5", "35", "58"]
    assert {each["data.prepared"] for each in commands[:3]} == {f"{case.folder}/prepared"}  # its own subwords
    assert case.record["starts"] == [120.0]  # 4 + 232 / 2: the whole budget
    assert case._updates() == (232, 0.5)
    (case.folder.parent / "speed.json").write_text("[[9.0, 20.0], [4.0, 14.0], [4.5, 11.5]]")
    assert case._updates() == (469, 0.25)  # by the fastest training of each length
    other = Case(Base(CONFIG, (), Budget(3.0, None), tmp_path), case.system, 7)
    with pytest.raises(InputError, match=r"seed-7: was trained for 2 CPU minutes; delete it or give another --output$"):
        other.work("valid", ())


def test_a_comparison_whose_systems_all_fail_ends_with_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(self: Case, split: str, gold: Sequence[Path]) -> None:
        raise InputError("out of memory")

    monkeypatch.setattr(Case, "work", work)
    with pytest.raises(SystemExit) as ended:
        compare_attention.main([f"--config={CONFIG}", f"--output={tmp_path}", "--systems=baseline", "--updates=3"])
    assert ended.value.code == 1
    assert "baseline, seed 1: out of memory" in capsys.readouterr().err


def test_a_comparison_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two systems; figures are sacreBLEU's of the translations of all seeds. A second call trains and measures none."""
    monkeypatch.chdir(ROOT)
    for side in ("de", "en"):
        lines = (ROOT / "data" / "de-en" / f"train.{side}").read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / f"train.{side}").write_text("".join(lines[:150]), encoding="utf-8")
        (tmp_path / f"valid.{side}").write_text("".join(lines[150:170]), encoding="utf-8")
    (tmp_path / "links").write_text("0-0 1-1\n" * 20)
    corpus = [
        f"data.{part}={{source: {tmp_path}/{part}.de, target: {tmp_path}/{part}.en}}" for part in ("train", "valid")
    ]
    sizes = [f"model.{part}.size=16" for part in ("embedding", "encoder", "decoder")]
    changes = [*corpus, *sizes, "data.subwords.size=200", "search.max_length=10"]
    arguments = [f"--config={CONFIG}", *(f"--set={each}" for each in changes), f"--output={tmp_path / 'all'}"]
    arguments += ["--systems=baseline,context/every_step,scores/additive", "--jobs=2", "--updates=3"]
    arguments += ["--edges=5", "--gold", *(str(tmp_path / name) for name in ("valid.de", "valid.en", "links"))]
    compare_attention.main(arguments)
    monkeypatch.setattr(Case, "_run", None)
    compare_attention.main(arguments)
    first, second = capsys.readouterr().out.split("3 updates of one thread")[1:]
    assert first == second
    for name in ("baseline", "context/every_step"):  # another seed, with other translations
        shutil.copytree(tmp_path / "all" / name / "seed-1", tmp_path / "all" / name / "seed-2")
        others = (tmp_path / "valid.en").read_text(encoding="utf-8").splitlines(keepends=True)
        text = "".join(line if number % 3 else "No.\n" for number, line in enumerate(others))
        (tmp_path / "all" / name / "seed-2" / "valid" / "translations.txt").write_text(text, encoding="utf-8")
    compare_attention.main([*arguments, "--seeds=1,2"])
    tree = json.loads((tmp_path / "all" / "comparison.json").read_text(encoding="utf-8"))
    assert tree["failures"] == []
    assert [each["system"] for each in tree["systems"]] == ["baseline", "context/every_step"]
    sources, references = (list(read_lines(tmp_path / f"valid.{side}")) for side in ("de", "en"))
    for each in tree["systems"]:
        translations = [
            list(read_lines(tmp_path / "all" / each["system"] / f"seed-{seed}" / "valid" / "translations.txt"))
            for seed in (1, 2)
        ]

        def bleu(rows: list[int], found: list[list[str]] = translations) -> Any:
            hypotheses = [of_seed[row] for of_seed in found for row in rows]
            return pytest.approx(sacrebleu.corpus_bleu(hypotheses, [[references[row] for row in rows] * 2]).score)

        rows = [*range(20)]
        assert each["BLEU"]["value"] == bleu(rows)
        assert each["by length"]["0-5"]["value"] == bleu([row for row in rows if len(sources[row].split()) <= 5])
        chrf = [sacrebleu.corpus_chrf(of_seed, [references]).score for of_seed in translations]
        assert each["chrF of seeds"][0] == pytest.approx(chrf[0])
        assert each["AER gradient"] > 0
    assert tree["systems"][0]["AER attention"] > 0
    assert tree["systems"][1]["AER attention"] is None


def test_systems_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "systems.yaml"
    path.write_text("dropout/high: [model.dropout.layers=0.4, seed=2]\n")
    assert read_systems(path) == (System("baseline"), System("dropout/high", ("model.dropout.layers=0.4", "seed=2")))
    path.write_text("dropout/high: {model.dropout.layers: 0.4}\n")
    with pytest.raises(InputError, match=r"systems.yaml: dropout/high: expected a list of KEY=VALUE$"):
        read_systems(path)


def test_an_unknown_system_and_a_failed_one_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"^--systems dot: is neither a system nor a group of them; --list shows all$"):
        compare_attention.main([f"--config={CONFIG}", "--systems=dot"])
    case = Case(Base(CONFIG, ("model.encoder.cell=stone",), Budget(None, 3), tmp_path), System("x"), 1)
    with pytest.raises(InputError, match=r"^error: .*log.txt\)$"):
        case.work("valid", ())
