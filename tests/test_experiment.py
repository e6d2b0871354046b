"""The tree of a configuration: sections that contradict each other, what a run may change, and its target language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt import experiment as experiments
from nmt.core.errors import InputError
from nmt.experiment import HORIZON, Experiment

CONFIG = """\
run: runs/a
data: {train: {source: a, target: b}, valid: {source: c, target: d}}
training: {stopping: {updates: 8}}
"""
ALONE = "data.valid=null"
MARGINAL = "model.attention.weights={kind: hard, training: marginal}"
NO_FEEDING = "model.decoder.input_feeding=false"
NO_SCORE = "model.attention.score=none"
LINKED = "data.train={source: a, target: b, links: c}"
LANGUAGES = "data.train=[{source: a, target: b, languages: [en, fra]}, {source: a, target: c, languages: [en, de]}]"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path / "config.yaml"


OLD_DOMAIN = "data.old_domain={source: e, target: f}"
NO_BLEU = "training.validation={bleu: false, metric: loss}"


WAITS = ("training.wait={}", "model.encoder.bidirectional=false", "model.decoder.start=zeros")
TRANSFORMERS = ("model.encoder={kind: transformer}", "model.decoder={kind: transformer}")


# Those of guided attention are in tests/training/test_objective.py.
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["model.embedding.tie=all", "data.subwords.joint=false"], "tie: all needs one vocabulary for both"),
        ([ALONE, "training.stopping={patience: 3}"], "without data.valid, training.stopping needs updates, epochs or"),
        ([ALONE, "training.schedule=plateau"], "without data.valid there is no metric for training.schedule: plateau"),
        ([OLD_DOMAIN, ALONE], "data.old_domain is for validations"),
        ([OLD_DOMAIN, NO_BLEU], "data.old_domain is for validations"),
        (
            [MARGINAL, NO_FEEDING, "training.feed=free_running"],
            "training.feed: free_running needs a guess at each step",
        ),
        ([MARGINAL, NO_FEEDING, "training.risk={}"], "training.risk reads hypotheses, and model.att"),
        (["model.attention.weights=hard", "training.risk={}"], "risk reads hypotheses, and model.att"),
        (["training.wait={}", NO_SCORE], "from attention, which model.attention.score: none does not allow"),
        ([*WAITS, "model.encoder.bidirectional=true"], "model.encoder.bidirectional would show; set it to false"),
        (["training.wait={}", *TRANSFORMERS], "model.encoder.causal would show; set it to true"),
        ([*WAITS[:2]], "model.decoder.start would show; set it to zeros"),
        ([*WAITS, "model.decoder.context=first_step"], "model.decoder.context would show; set it to nothing"),
        ([*WAITS, "model.attention.weights=glimpse"], "which model.attention.weights: glimpse does not allow"),
        ([*WAITS, "training.r_drop=1"], "r_drop needs whole sentences, of which wait hides parts; leave one"),
        ([*WAITS, "training.feed=free_running"], "feed: free_running needs whole sentences, of which wait hides"),
        (["training.wait={least: 3, most: 2}"], "most: 2 is below least: 3; exchange them"),
        (["training.snapshots=-1"], "training.snapshots: expected at least 0"),
        (["training.snapshots=2", ALONE], "data.valid, and there is none; leave it out"),
        (["training.snapshots=2", NO_SCORE], "model.attention.score: none has none; leave it out"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_sections_that_contradict_each_other(config: Path, changes: Sequence[str], message: str) -> None:
    with pytest.raises(InputError) as error:
        experiments.load(config, changes)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        *((change, []) for change in ("run=runs/b", "search.beam=9", "data.workers=2", "training.average=2")),
        (f"{HORIZON}=9", []),
        ("seed=9", ["seed"]),
        ("training.ema=0.9", ["training.ema"]),
        ("model.decoder.size=24", ["model.decoder.size"]),
    ],
)
def test_what_a_run_may_change_when_it_goes_on(config: Path, change: str, keys: Sequence[str]) -> None:
    assert experiments.conflicts(experiments.load(config), experiments.load(config, [change])) == keys


@pytest.mark.parametrize("extend", [False, True])
def test_a_schedule_to_the_end_fixes_the_updates(config: Path, extend: bool) -> None:
    old, new = (experiments.load(config, ["training.schedule=linear", f"{HORIZON}={count}"]) for count in (8, 9))
    assert experiments.conflicts(old, new, extend=extend) == ([] if extend else [HORIZON])


def test_what_is_saved_is_loaded_again(config: Path) -> None:
    experiment = experiments.load(config, [LINKED, "training.guided_attention={}", "model.encoder.size=7"])
    experiments.save(experiment, config)
    assert experiments.load(config) == experiment
    assert "dropout" in config.read_text()  # defaults are written out


def test_variables_in_the_run_are_expanded(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRATCH", "/scratch/me")
    for run, folder in (("${SCRATCH}/a", "/scratch/me/a"), ("~/a", f"{Path.home()}/a"), ("${NOWHERE:-b}", "b")):
        assert str(experiments.load(config, [f"run={run}"]).folder) == folder
    with pytest.raises(InputError, match="run: the environment variable NOWHERE is not set"):
        experiments.load(config, ["run=${NOWHERE}"])


@pytest.mark.parametrize(("to", "found"), [(None, None), ("fra", "fra"), (">>fra<<", "fra"), (">>xx<<", ">>xx<<")])
def test_a_target_language_may_be_written_as_on_the_cards_of_opus_mt(
    config: Path, to: str | None, found: str | None
) -> None:
    experiment: Experiment = experiments.load(config, [LANGUAGES, ALONE])
    assert experiment.to(to).search.to == found
    assert to is None or experiments.load(config, [LANGUAGES, ALONE, f"search.to='{to}'"]).search.to == found
