"""``nmt init``: the parts of the corpus, the size of the model, and the time that its training takes."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import yaml

from nmt import experiment as experiments
from nmt.cli.app import main
from nmt.data.config import CorpusConfig
from nmt.data.splitting import Survey
from nmt.experiment import Experiment
from nmt.extras.aligner import align
from nmt.extras.corpus import example
from nmt.workflows import init_config as sizes
from nmt.workflows import training_time
from nmt.workflows.init_config import Size, Speed, size_for, target_tokens, updates_for, updates_in
from tests.workflows.killing import Bomb, fork
from tests.workflows.runs import Command, in_process, json_lines, lines_of, sentences, settings_of, write_lines

CPU = ("--device", "cpu")
TSV = ("--tsv", "pairs.tsv", *CPU)
NONE_HELD_OUT = ("--valid-pairs", "0", "--test-pairs", "0")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with pairs.tsv, x.de and x.en: 80 pairs, of which five come again."""
    pairs = sentences(80, seed=2)
    pairs += pairs[:5]
    monkeypatch.chdir(tmp_path)
    write_lines("pairs.tsv", map("\t".join, pairs))
    for name, lines in zip(("x.de", "x.en"), zip(*pairs, strict=True), strict=True):
        write_lines(name, lines)
    return tmp_path


@pytest.fixture
def init(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "init", "--no-time")


def load(name: str = "a") -> Experiment:
    return experiments.load(Path(f"{name}.yaml"))


def test_what_it_writes_trains(here: Path, nmt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_time, "SECONDS", 0.5)
    done = nmt("init", "a.yaml", *TSV)
    said = done.stderr.splitlines()
    assert (done.output, said[-1]) == ("", "next    nmt train a.yaml")
    machine = r"this machine \(\d+ CPU cores?(, busy with other programs: alone about \d+ min)?\)"
    assert re.fullmatch(rf"time    about [1-9]\d* min for 400 updates on {machine}, and validations", said[6])
    changes = ("training.stopping.updates=2", "training.schedule.warmup=1", "training.log_every=1")
    trained = nmt("train", "a.yaml", *settings_of(*changes), "--precision", "float32")
    assert trained.stderr.splitlines()[-3:] == [
        "translate  nmt translate runs/a --input FILE --output TRANSLATION",
        "measure    nmt evaluate runs/a",
        "more       nmt info runs/a",
    ]
    # nothing of what was held out had to be dropped from training
    report = json.loads(Path("runs/a/prepared/report.json").read_text())
    assert (report["corpora"][0]["dropped"]["held out"]["pairs"], report["valid"]["pairs"]) == (0, 4)
    # attention learns from word links, one line of them for each pair to train on
    assert len(lines_of("data/a/train.links")) == len(lines_of("data/a/train.tsv"))
    assert '"guidance"' in Path("runs/a/metrics.jsonl").read_text()


def test_a_configuration_to_fine_tune_a_run(here: Path, init: Command, nmt: Command, trained: Path) -> None:
    """It trains as it is, from the weights of the run; the first validation, before any update, is of these."""
    shutil.copytree(trained / "run", "old", symlinks=True)
    config = Path("old/config.yaml")
    text = config.read_text().replace("batch_tokens: 60", "batch_tokens: 2048").replace("beam: 5", "beam: 3")
    config.write_text(text.replace("kind: adamw", "kind: adam"))
    assert init("a", *TSV, "--from", "old").code == 0
    loaded, old = load(), experiments.load(config)
    assert (loaded.model, loaded.data.subwords.joint) == (old.model, old.data.subwords.joint)
    assert (loaded.search, old.search.beam) == (old.search, 3)
    optimizer, old_optimizer = loaded.training.optimizer, old.training.optimizer
    assert (optimizer.kind, optimizer.learning_rate) == ("adam", old_optimizer.learning_rate / 4)
    assert (loaded.training.batching.batch_tokens, old.training.batching.batch_tokens) == (1024, 2048)  # few pairs
    old_domain = f"data.old_domain={{source: {trained}/valid.de, target: {trained}/valid.en}}"
    changes = (old_domain, "search.max_length_ratio=1.5", "training.stopping.updates=1", "training.schedule.warmup=0")
    assert nmt("train", "a.yaml", *settings_of(*changes), "--precision", "float32").code == 0
    first, before = json_lines("runs/a/metrics.jsonl")[0], json_lines(trained / "run/metrics.jsonl")[-1]
    scores = [first[name] for name in ("update", "bleu old domain", "chrf old domain")]
    assert scores == [0, before["bleu"], before["chrf"]]
    for corpus in (["--tsv", "pairs.tsv"], ["--example"]):
        assert init("b", *corpus, "--from", "nowhere").error.startswith("nowhere: no such run directory")
        assert not Path("data/b").exists()


def test_a_configuration_of_a_transformer_names_its_kinds(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "run", tmp_path / "run", symlinks=True)
    part = "{kind: transformer, layers: 1, size: 16, heads: 2}"
    transformer = [f"model.{side}={part}" for side in ("encoder", "decoder")]
    experiment = experiments.load(trained / "config.yaml", transformer)
    experiments.save(experiment, tmp_path / "run" / experiments.FILE)
    model = yaml.safe_load(sizes.size_of_run(str(tmp_path / "run")).model)
    assert experiments.load(trained / "config.yaml", [f"model={json.dumps(model)}"]).model == experiment.model


def test_two_files_are_split_side_by_side(here: Path, init: Command) -> None:
    """Even where the name of the source ends as that of the links does."""
    Path("x.de").rename("x.links")
    assert init("a", "--source", "x.links", "--target", "x.en", *CPU).code == 0
    data = load().data
    given = set(zip(lines_of("x.links"), lines_of("x.en"), strict=True))
    assert data.train_corpora[0].source != data.train_corpora[0].links
    assert data.valid is not None
    for corpus in (*data.train_corpora, data.valid, *data.test_corpora):
        source, target = corpus.files
        assert set(zip(lines_of(source), lines_of(target), strict=True)) < given


def test_parts_are_held_out_and_it_says_so(here: Path, init: Command) -> None:
    done = init("new", *TSV, "--valid-pairs", "7", "--test-pairs", "30")
    names = ("data/new/train.tsv", "data/new/valid.tsv", "data/new/test.tsv", "pairs.tsv")
    train, valid, test, whole = map(lines_of, names)
    assert (len(valid), len(test), {*train, *valid, *test}) == (7, 30, set(whole))
    assert not set(train) & {*valid, *test}
    repeats = sum(line in {*valid, *test} for line in whole[80:])
    assert len(train) == 85 - 37 - repeats
    tokens = sum(len(line.split("\t")[1].encode()) / 4 + 1 for line in whole) * len(train) / 85
    left_out = f"; {repeats} repeats of these left out" if repeats else ""
    few = f"the aligner has learnt from only {len(set(train))} different pairs"
    assert done.stderr.splitlines() == [
        "corpus  85 pairs",
        f"split   {len(train)} pairs to train on, 7 to validate, 30 to test{left_out}: data/new",
        f"model   tiny, Transformer, for {len(train)} pairs, about {round(tokens, -1):.0f} target subwords, on a CPU",
        f"aligner  learning from {len(train)} pairs",
        f"warning: {few}, so many links will be wrong; give it some thousand pairs",
        "wrote   new.yaml",
        "next    nmt train new.yaml",
    ]
    loaded = load("new")
    assert (loaded.run, str(loaded.data.train_corpora[0].pairs)) == ("runs/new", "data/new/train.tsv")


def test_the_same_seed_holds_out_the_same(here: Path, init: Command) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert init(name, *TSV, "--seed", seed).code == 0
    a, b, c = (Path(f"data/{name}/valid.tsv").read_bytes() for name in "abc")
    assert a == b != c


def test_files_that_are_given_are_used_as_they_are(here: Path, init: Command) -> None:
    arguments = ["--source", "x.de", "--target", "x.en", "--valid-tsv", "pairs.tsv", "--test-pairs", "0", *CPU]
    assert init("a", *arguments).code == 0
    data = load().data
    assert data.valid is not None
    assert (str(data.train_corpora[0].source), str(data.valid.pairs), data.test_corpora) == ("x.de", "pairs.tsv", ())
    assert [file.name for file in Path("data/a").iterdir()] == ["train.links"]
    Path("a.yaml").unlink()
    assert init("a", *arguments).error.startswith("data/a/train.links: is there already; give")


def test_text_without_spaces_gets_no_word_links(here: Path, init: Command) -> None:
    characters = "我们今天在家里学习很多新的中文"
    write_lines("zh.tsv", (f"{characters[k % 7 :]}{k}\twe learn much at home {k}" for k in range(60)))
    assert init("a", "--tsv", "zh.tsv", *CPU).code == 0
    assert (load().training.guided_attention, load().data.train_corpora[0].links) == (None, None)
    assert not Path("data/a/train.links").exists()


def test_targets_keep_the_characters_that_normalization_would_replace(here: Path, init: Command, nmt: Command) -> None:
    write_lines("zh.tsv", (f"we learn at home {k}\t我们，在家里学习{k}" for k in range(60)))
    assert init("a", "--tsv", "zh.tsv", *CPU).code == 0
    subwords = load().data.subwords
    assert subwords.normalization == "nfc"
    assert "100.0% of the targets (， becomes ,)" in Path("a.yaml").read_text()
    assert "warning" not in nmt("prepare", "a.yaml").stderr
    config = ("--set", "data.subwords.normalization=nmt_nfkc")
    warning = (
        "100.0% of its targets are changed by data.subwords.normalization (， becomes ,), and the model will write"
    )
    assert warning in nmt("prepare", "a.yaml", *config).stderr
    assert init("b", *TSV).code == 0
    assert load("b").data.subwords.normalization == "nmt_nfkc"


def test_pairs_of_one_language_are_kept(here: Path, init: Command, nmt: Command) -> None:
    write_lines("gec.tsv", (f"{'I has' if k % 4 else 'I have'} {k}\tI have {k}" for k in range(80)))
    assert init("a", "--tsv", "gec.tsv", "--valid-pairs", "40", *CPU).code == 0
    assert load().data.filters.identical is False
    assert "  # 25.0% of the pairs have the same text on both sides" in Path("a.yaml").read_text()
    assert any(source == target for source, target in (line.split("\t") for line in lines_of("data/a/valid.tsv")))
    assert "warning" not in nmt("prepare", "a.yaml").stderr
    dropped = nmt("prepare", "a.yaml", "--set", "data.filters.identical=true").stderr
    assert re.search(
        r"warning: data\.filters\.identical drops \d\d\.\d% of the pairs, whose sides are the same", dropped
    )
    assert init("b", *TSV).code == 0
    assert load("b").data.filters.identical


def test_very_few_pairs_get_no_word_links(here: Path, init: Command) -> None:
    """The aligner would find none in some of them."""
    write_lines("few.tsv", lines_of("pairs.tsv")[:3])
    assert init("a", "--tsv", "few.tsv", *CPU).code == 0
    assert load().training.guided_attention is None


def test_nothing_is_held_out_of_a_file_with_an_odd_name(here: Path, init: Command) -> None:
    """YAML would take the names for something else. A pair too long to align has no links."""
    odd = Path("on: #1 'x' ü.tsv")
    odd.write_text(Path("pairs.tsv").read_text() + f"{'ein ' * 1001}\t{'a ' * 1001}\n")
    assert init("true", "--tsv", odd, *NONE_HELD_OUT, *CPU).code == 0
    loaded = load("true")
    found = (str(loaded.data.train_corpora[0].pairs), loaded.run, loaded.data.valid)
    assert found == (odd.name, "runs/true", None)
    assert [bool(line) for line in lines_of("data/true/train.links")] == [True] * 85 + [False]


def test_interrupted_it_can_be_given_again(here: Path, init: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*parts: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(align, "write_links", interrupted)
        assert init("a", *TSV).code == 130
    assert init("a", *TSV).code == 0


@pytest.mark.parametrize("corpus", ["--tsv pairs.tsv", "--example"])
def test_killed_before_each_step_it_can_be_given_again(
    tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch, corpus: str
) -> None:
    """But for the steps after the configuration is written, which nobody needs to give again."""
    monkeypatch.setattr(align, "write_links", lambda _, links: links.write_text("0-0\n"))
    monkeypatch.setattr(example, "PAIRS", {"train": 40, "valid": 10, "test": 10})
    arguments = ["init", "a", *corpus.split(), *CPU, "--no-time", "--quiet"]
    for fuse in itertools.count():
        shutil.rmtree("data", ignore_errors=True)
        Path("a.yaml").unlink(missing_ok=True)

        def work(bomb: Bomb = Bomb(tmp_path, fuse, random.Random(1))) -> None:  # noqa: B008
            bomb.arm()
            main(arguments)

        code, where = fork(work)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        if not Path("a.yaml").exists():
            assert fork(lambda: main(arguments))[0] == 0, where
        loaded = experiments.load(Path("a.yaml"), with_corpora=True)
        assert loaded.data.train_corpora[0].links == Path("data/a/train.links")
    assert list(Path("data/a").glob(".*")) == []
    assert fuse > 20


def test_a_full_disk_is_named(here: Path) -> None:
    """The message names the folder that is being made, of which nothing remains. ``ulimit -f`` counts blocks of 512
    bytes or more."""
    write_lines("big.tsv", (f"ein Wort {n}\ta word {n}" for n in range(20_000)))
    command = f"trap '' XFSZ; ulimit -f 100; exec {sys.executable} -m nmt init a --tsv big.tsv --device cpu --no-time"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, cwd=here)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "error: data/a: File too large")
    assert [path.name for path in Path("data").iterdir()] == [".a.lock"]


@pytest.mark.parametrize(
    ("pairs", "cuda", "size"),
    [
        (1, True, sizes.TINY),
        (4_999, False, sizes.TINY),
        (5_000, False, sizes.SMALL_DROPOUT),
        (49_999, True, sizes.SMALL_DROPOUT),
        (50_000, False, sizes.SMALL_TRANSFORMER),
        (99_999, True, sizes.SMALL_TRANSFORMER),
        (100_000, False, sizes.MEDIUM_CPU),
        (100_000, True, sizes.BASE_CUDA),
    ],
)
def test_the_size_goes_by_text_and_machine(pairs: int, cuda: bool, size: Size) -> None:
    assert size_for(tokens(pairs), cuda=cuda) is size
    # twice as many pairs that are half as long are as much
    assert size_for(target_tokens(found(2 * pairs, target_letters=28), 2 * pairs), cuda=cuda) is size


def found(pairs: int, *, characters: int = 80, words: int = 50_000, target_letters: int = 60) -> Survey:
    """Pairs as long as those of Multi30k."""
    return Survey(pairs, target_letters * pairs, characters, words, (), True, 0)


def tokens(pairs: int) -> int:
    return target_tokens(found(pairs), pairs)


@pytest.mark.parametrize(
    ("size", "updates", "rate", "reason"),
    [
        (sizes.SMALL_TRANSFORMER, 1_500, 0.1, ""),
        (sizes.SMALL_TRANSFORMER, 200, 0, "  # 0, as pairs are read 0.9 times"),
        (sizes.TINY, 8_000, 0.3, ""),
        (sizes.TINY, 4_000, 0.1, "  # 0.1, as pairs are read 8.8 times"),
        (sizes.TINY, 2_000, 0, "  # 0, as pairs are read 4.4 times"),
    ],
)
def test_dropout_waits_for_pairs_that_are_read_again(
    tmp_path: Path, size: sizes.Size, updates: int, rate: float, reason: str
) -> None:
    corpora = {"train": CorpusConfig(source=tmp_path / "t.de", target=tmp_path / "t.en")}
    text = sizes.config_text(
        path=tmp_path / "x.yaml", run=tmp_path / "run", size=size, updates=updates,
        found=found(29_000), train_pairs=29_000, corpora=corpora, links=tmp_path / "links", cuda=False, seed=1,
        changes=None,
    )  # fmt: skip
    assert yaml.safe_load(text)["model"]["dropout"] == {"embedding": rate, "layers": rate}
    assert f"  dropout: {{embedding: {rate}, layers: {rate}}}{reason}\n" in text


def test_the_page_on_hardware_has_the_updates_that_init_writes() -> None:
    page = (Path(__file__).parents[2] / "docs/hardware.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ([\d,]+ ?(?:million)?) \|.* ([\d,]+) updates \|.*\| (?:the same|.* ([\d,]+) updates) \|", page, re.M
    )
    assert len(rows) == 4
    for pairs, *counts in rows:
        tokens = 16 * int(re.sub(r"\D", "", pairs)) * (10**6 if "million" in pairs else 1)
        for cuda, count in zip((False, True), counts, strict=True):
            assert count in ("", f"{updates_for(size_for(tokens, cuda=cuda), tokens):,}")


def test_vocabulary_and_updates_fit_the_corpus() -> None:
    assert sizes.subwords_for(sizes.SMALL_TRANSFORMER, found(29_000)) == 8000
    # no more than there are words
    assert sizes.subwords_for(sizes.TINY, found(100, characters=40, words=100)) == 48 + 80
    assert sizes.subwords_for(sizes.TINY, found(900, characters=3000)) == 6016  # room for a script of many characters
    # the training of Multi30k that README.md measures has 1,700 updates of twice as large batches
    assert 2400 <= updates_for(sizes.SMALL_TRANSFORMER, tokens(29_000)) <= 5200
    counts = [updates_for(size_for(each, cuda=False), each) for each in map(tokens, (50, 10**4, 10**5, 10**7))]
    assert counts == sorted(counts)
    assert counts[0] == 500


def test_updates_fit_the_minutes(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []

    def measured(experiment: Experiment, pairs: Sequence[tuple[str, str]], **_: object) -> Speed:
        lengths.append(len(pairs))
        return Speed(0.5, "2 CPU cores", validation=0.125)  # of 4 pairs: half a second

    def intervals(name: str) -> tuple[int | None, int, int]:
        training = load(name).training
        return training.stopping.updates, training.schedule.warmup, training.validation.every

    monkeypatch.setattr(training_time, "measure_training", measured)
    timed = in_process(capsys, "init", *TSV)
    on_machine = "updates on this machine (2 CPU cores), and validations"
    time = f"time    about 9 min for 1,080 {on_machine}; without --minutes there would be 400"
    assert timed("a", "--minutes", "10").stderr.splitlines()[6] == time
    assert intervals("a") == (1080, 108, 108)
    assert f"time    about 3 min for 400 {on_machine}" in timed("b").stderr
    warning = "--minutes 0.1: 10 updates teach hardly anything; --minutes 2 would pay for 200, which do"
    assert timed("c", "--minutes", "0.1").stderr.count(f"warning: {warning}\n")
    assert intervals("c") == (10, 4, 10)
    assert timed("d", "--quiet").stderr.startswith("warning: the aligner has learnt from only")
    assert lengths == [80] * 3
    monkeypatch.undo()
    monkeypatch.chdir(here)
    too_little = "there is too little text beside that of valid and test to measure a training on"
    known = ("--valid-tsv", "pairs.tsv", "--test-pairs", "0")
    assert timed("e", "--minutes", "3", *known).error == too_little
    assert not Path("e.yaml").exists()
    assert f"time    not measured: {too_little}" in timed("e", *known).stderr
    if not torch.cuda.is_available():
        on_cuda = in_process(capsys, "init", "--device", "cuda", "--tsv", "pairs.tsv")
        assert on_cuda("f").code == 0
        assert on_cuda("g", "--minutes", "3").error.startswith("--minutes: no CUDA device is here")


@pytest.mark.parametrize(
    ("minutes", "pairs", "expected"),
    [
        (10.0, 0, (1080, 10)),  # nothing to validate, and yet its share
        (10.0, 100, (1080, 6)),  # ten seconds each, of sixty
        (4.0, 1000, (280, 1)),  # a hundred seconds of 240
        (1.0, 1000, (1, 1)),
    ],
)
def test_validations_fit_inside_the_minutes(minutes: float, pairs: int, expected: tuple[int, int]) -> None:
    assert updates_in(minutes, Speed(0.5, "", validation=0.1), pairs) == expected


@pytest.mark.parametrize(("seconds", "name", "size"), [(0.5, "medium", 256), (0.6, "tiny", 128)])
def test_a_smaller_model_where_time_is_short(
    here: Path, nmt: Command, monkeypatch: pytest.MonkeyPatch, seconds: float, name: str, size: int
) -> None:
    # the usual 200 updates take 1.7 or 2 minutes
    for most in ("SMALL", "MIDDLE", "BASE"):
        monkeypatch.setattr(sizes, most, 1)
    monkeypatch.setattr(training_time, "measure_training", lambda *_, **__: Speed(seconds, "a CPU"))
    said = nmt("init", *TSV, "a", "--minutes", "1").stderr
    assert f"\nmodel   {name}, Transformer" in said
    assert load().model.embedding.size == size
    assert not Path("data/a/train.links").exists()  # many pairs take long to align
