from __future__ import annotations

import fcntl
import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.core.errors import InputError
from nmt.data import atomic_folder
from nmt.data.config import DataConfig
from nmt.data.corpus import read_blocks
from nmt.data.prepared import PreparedData
from nmt.data.report import Report, report_table
from nmt.data.store import Store
from nmt.data.tokenizer import TokenizerPair
from nmt.workflows import build_corpus
from nmt.workflows.prepare import prepare
from tests.data.conftest import make_pairs

CODE = (
    "import sys, pathlib; from nmt.data.config import DataConfig; from nmt.workflows.prepare import prepare\n"
    "made = prepare(DataConfig.model_validate_json(sys.argv[1]), run=pathlib.Path(sys.argv[2]), seed=1)\n"
    "print(made.reused, len(made.train))"
)


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8", newline="")
    return path


def config_of(path: Path, /, **data: Any) -> DataConfig:
    data = {"train": {"pairs": str(path)}, "subwords": {"size": 120}, **data}
    return DataConfig.model_validate_json(json.dumps(data, default=str))


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return make_pairs(400)


@pytest.fixture
def train(tmp_path: Path, pairs: list[tuple[str, str]]) -> Path:
    return write_pairs(tmp_path / "train.tsv", pairs)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_store_holds_the_encoded_corpus(tmp_path: Path, train: Path, pairs: list[tuple[str, str]]) -> None:
    made = prepare(config_of(train), run=tmp_path / "run", seed=1)
    assert made.folder == tmp_path / "run" / "prepared"
    assert not made.reused
    assert made.valid is None
    assert len(made.train) == len(pairs) == made.report.kept
    for index, (source, target) in enumerate(pairs):
        assert made.train.source(index).tolist() == made.tokenizers.source.encode(source)
        assert made.train.target(index).tolist() == made.tokenizers.target.encode(target)
        assert made.train.line(index) == (str(train), index + 1)
    assert not made.train.has_text


def test_every_filter_is_counted_with_its_lines(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    good = pairs[:300]
    valid, test = ("der Hund läuft", "the dog runs"), ("die Katze schläft", "the cat sleeps")
    long = " ".join(["der Hund"] * 150)
    bad: list[tuple[tuple[str, str], str]] = [
        (("", "x"), "empty"),
        (("x", " \u3000"), "empty"),
        (("\u200b", "normalised away"), "empty"),
        (("a\0b", "x y"), "control characters"),
        (("same thing", " same thing"), "identical"),
        (valid, "held out"),
        (test, "held out"),
        (good[3], "duplicate"),
        ((f" {good[4][0]} ", good[4][1]), "duplicate"),
        ((long, "x"), "too long"),
        (("x", long), "too long"),
        (("." * 60, "a"), "length ratio"),
    ]
    rows = good + [pair for pair, _ in bad] + [pairs[301]] + [("", "again")] * 15
    corpora = [
        write_pairs(tmp_path / "a.tsv", rows),
        write_pairs(tmp_path / "b.tsv", [good[0], ("ganz neu", "all new")]),
    ]
    config = config_of(
        corpora[0], train=[{"pairs": str(path)} for path in corpora],
        valid={"pairs": write_pairs(tmp_path / "valid.tsv", [valid, ("", "x")])},
        test=[{"pairs": write_pairs(tmp_path / "test.tsv", [test])}],
    )  # fmt: skip
    made = prepare(config, run=tmp_path / "run", seed=1)
    first, second = made.report.corpora

    expected: dict[str, list[int]] = {"near duplicate": [], "no pair": []}  # which are kept unless asked for
    for offset, (_, name) in enumerate(bad):
        expected.setdefault(name, []).append(301 + offset)
    expected["empty"] += range(314, 329)
    assert {name: drop.pairs for name, drop in first.dropped.items()} == {
        name: len(lines) for name, lines in expected.items()
    }
    assert {name: list(drop.first_lines) for name, drop in first.dropped.items()} == {
        name: lines[:10] for name, lines in expected.items()
    }
    assert (first.pairs, first.kept) == (328, 301)
    assert second.kept == 1
    assert second.dropped["duplicate"].first_lines == (1,)
    assert [made.train.line(index) for index in (299, 300, 301)] == [
        (str(corpora[0]), 300), (str(corpora[0]), 313), (str(corpora[1]), 2),
    ]  # fmt: skip

    assert made.report.valid is not None
    assert made.report.valid.blank.first_lines == (2,)
    table = "\n".join(report_table(made.report))
    assert "18   lines 301, 302, 303, 314, 315, 316, 317, 318, 319, 320, …\n" in table
    assert "1   line 304\n" in table


def test_rows_that_are_no_pairs_join_the_report(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    path = write_pairs(tmp_path / "a.tsv", pairs[:100])
    path.write_bytes(b"no pair\n" + path.read_bytes() + b"gr\xfcn\tgreen\n")
    made = prepare(config_of(path), run=tmp_path / "run", seed=1)
    (corpus,) = made.report.corpora
    assert (corpus.pairs, corpus.kept, corpus.dropped["no pair"].first_lines) == (102, 100, (1, 102))
    assert any(line.split()[1:4] == ["no", "pair", "2"] for line in report_table(made.report))
    assert made.train.line(0) == (str(path), 2)
    with pytest.raises(InputError, match="2 of 102 rows are no pairs: 1 without exactly one TAB, 1 not UTF-8"):
        prepare(config_of(path, faulty="refuse"), run=tmp_path / "run", seed=1)


def test_near_duplicates_are_told_and_dropped_where_asked(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    (source, target), count = pairs[7], len(pairs)
    near = [(source.upper(), f"{target} !"), (f"{source} 2.", target), (f"{source}?", "something else")]
    train = write_pairs(tmp_path / "train.tsv", [*pairs, pairs[7], *near])
    told = prepare(config_of(train), run=tmp_path, seed=1)
    (corpus,) = told.report.corpora
    assert (corpus.kept, corpus.near_duplicates.first_lines) == (count + 3, (count + 2, count + 3))
    assert (corpus.dropped["duplicate"].first_lines, corpus.dropped["near duplicate"].pairs) == ((count + 1,), 0)
    (row,) = (line.split() for line in report_table(told.report) if line.startswith("    near "))
    assert row == ["near", "duplicates", "2", "kept;", "lines", f"{count + 2},", f"{count + 3}"]
    dropped = prepare(config_of(train, filters={"near_duplicates": True}), run=tmp_path, seed=1)
    (corpus,) = dropped.report.corpora
    assert not dropped.reused
    assert (corpus.kept, corpus.near_duplicates.pairs) == (count + 1, 0)
    assert corpus.dropped["near duplicate"].first_lines == (count + 2, count + 3)
    assert dropped.train.line(count).number == count + 4
    with pytest.raises(ValueError, match="near_duplicates drops equal pairs too"):
        config_of(train, filters={"near_duplicates": True, "duplicates": False})


def test_filters_off_keep_everything_but_the_blank(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    odd = [pairs[0], pairs[0], ("same", "same"), ("a\x01b", "x"), ("der " * 150, "x"), ("", "x")]
    train = write_pairs(tmp_path / "train.tsv", pairs + odd)
    off = {"max_length": 1000, "max_ratio": 1000, "identical": False, "duplicates": False, "control_characters": False}
    valid = {"pairs": write_pairs(tmp_path / "valid.tsv", pairs[:5])}
    made = prepare(config_of(train, filters={**off, "held_out": "none"}, valid=valid), run=tmp_path, seed=1)
    assert len(made.train) == len(pairs) + 5
    assert made.train.line(len(made.train) - 1).number == len(pairs) + 5


def test_valid_is_kept_whole_with_its_text(tmp_path: Path, train: Path) -> None:
    lines = [("der Hund", "the dog"), ("", ""), ("x " * 300, "y"), ("gleich", "gleich"), ("a\x01b", "\u2028")]
    valid = {"pairs": write_pairs(tmp_path / "valid.tsv", lines)}
    made = prepare(config_of(train, valid=valid), run=tmp_path, seed=1)
    assert made.valid is not None
    assert [made.valid.text(index) for index in range(len(made.valid))] == lines
    assert made.report.valid is not None
    assert made.report.valid.too_long.first_lines == (3,)


def test_sampling_keeps_the_training_text(tmp_path: Path, train: Path, pairs: list[tuple[str, str]]) -> None:
    made = prepare(config_of(train, subwords={"size": 120, "sampling": 0.1}), run=tmp_path, seed=1)
    assert [made.train.text(index) for index in range(len(made.train))] == pairs


def test_the_report_counts_what_is_stored(tmp_path: Path, train: Path, pairs: list[tuple[str, str]]) -> None:
    valid = {"pairs": write_pairs(tmp_path / "valid.tsv", [("Ωmega", "the dog")])}
    made = prepare(config_of(train, valid=valid), run=tmp_path, seed=1)
    report = made.report
    assert Report.model_validate_json((made.folder / "report.json").read_text()) == report
    lengths = np.array([len(made.train.target(index)) for index in range(len(made.train))])
    assert report.target.tokens == lengths.sum()
    assert report.target.words == sum(len(target.split()) for _, target in pairs)
    assert report.target.tokens_per_word == pytest.approx(report.target.tokens / report.target.words)
    assert report.source.vocabulary == made.tokenizers.source.size == 120
    for name, percent in [("least", 0), ("25%", 25), ("median", 50), ("99%", 99), ("most", 100)]:
        assert report.target.lengths[name] == np.percentile(lengths, percent, method="inverted_cdf")
    assert report.source.unknown == 0
    assert report.valid is not None
    assert report.valid.unknown[0] > 0
    assert report.valid.unknown[1] == 0


def test_the_report_has_the_shares_of_lines(tmp_path: Path) -> None:
    lines = [f"Hund {number}. Und noch einer." for number in range(300)]
    lines += [f"Nr. {number}" for number in range(1500)] + [f"{number}, 5 %" for number in range(200)]
    train = write_pairs(tmp_path / "lines.tsv", [(line, f"the {number}") for number, line in enumerate(lines)])
    report = prepare(config_of(train), run=tmp_path, seed=1).report
    assert (report.several, report.letterless) == (300 / 2000, 200 / 2000)


def test_it_is_a_function_of_input_config_and_seed(tmp_path: Path, train: Path) -> None:
    config = config_of(train, subwords={"size": 120, "training_sentences": 200}, workers=1)
    made = [
        prepare(config, run=tmp_path / "a", seed=1),
        prepare(config.model_copy(update={"workers": 3}), run=tmp_path / "b", seed=1),
        prepare(config, run=tmp_path / "c", seed=2),
    ]
    contents = [content(one.folder) for one in made]
    assert contents[0] == contents[1]
    assert contents[0]["subwords.model"] != contents[2]["subwords.model"]


def test_blocks_and_threads_do_not_matter(
    tmp_path: Path, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    train = write_pairs(tmp_path / "train.tsv", (pairs + pairs[:50] + [("", "x")]) * 2)
    whole = prepare(config_of(train, workers=1), run=tmp_path / "whole", seed=1)
    monkeypatch.setattr(build_corpus, "read_blocks", functools.partial(read_blocks, size=7))
    blocks = prepare(config_of(train, workers=3), run=tmp_path / "blocks", seed=1)
    assert content(whole.folder) == content(blocks.folder)


def remade(config: DataConfig, run: Path, **arguments: Any) -> bool:
    return not prepare(config, run=run, **{"seed": 1, **arguments}).reused


def test_nothing_is_redone_unless_something_changed(
    tmp_path: Path, train: Path, pairs: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(train)
    assert remade(config, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "prepared").rglob("*")}
    capsys.readouterr()
    again = prepare(config, run=tmp_path, seed=1)
    assert again.reused
    assert "up to date" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "prepared").rglob("*")} == before
    assert again.train.source(3).tolist() == again.tokenizers.source.encode(pairs[3][0])

    train.touch()
    assert not remade(config, tmp_path)
    stat = train.stat()
    data = train.read_bytes()
    train.write_bytes(data.replace(b"Hund", b"Mund", 1))  # the same size and the same time
    os.utime(train, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert remade(config, tmp_path)
    assert remade(config, tmp_path, seed=2)
    assert remade(config, tmp_path, seed=2, force=True)
    changed = config_of(train, filters={"max_length": 5})
    assert remade(changed, tmp_path)
    assert not remade(changed.model_copy(update={"workers": 2}), tmp_path)
    assert [path.name for path in tmp_path.glob(".prepared*")] == [".prepared.lock"]


def test_rare_words_are_told_and_make_another_folder(tmp_path: Path, train: Path) -> None:
    config = {"kind": "word", "joint": False}
    whole = prepare(config_of(train, subwords=config), run=tmp_path, seed=1)
    assert not any("rarer words" in line for line in report_table(whole.report))
    rare = config_of(train, subwords={**config, "min_frequency": 3})
    made = prepare(rare, run=tmp_path, seed=1)
    assert not made.reused
    assert not remade(rare, tmp_path)
    lines = train.read_text(encoding="utf-8").splitlines()
    counts = Counter(word for line in lines for word in line.split("\t")[0].split())
    unknown = {word for word, count in counts.items() if count < 3}
    assert made.report.source.rare == len(unknown) > 0
    assert made.report.source.unknown == sum(counts[word] for word in unknown) / sum(counts.values())
    (row,) = (line.split() for line in report_table(made.report) if "rarer words" in line)
    assert row == ["rarer", "words", str(made.report.source.rare), str(made.report.target.rare)]


@pytest.mark.parametrize(
    "name", ["report.json", "state.json", "subwords.model", "train/source.bin", "train/store.json"]
)
def test_a_damaged_folder_is_made_again(tmp_path: Path, train: Path, name: str) -> None:
    config = config_of(train)
    expected = content(prepare(config, run=tmp_path, seed=1).folder)
    (tmp_path / "prepared" / name).write_bytes(b"{")
    if name == "state.json":  # without it the folder might be anything
        (tmp_path / "prepared" / name).write_text('{"key": 0}')
    assert remade(config, tmp_path)
    assert content(tmp_path / "prepared") == expected


def test_a_failure_leaves_the_folder_as_it_was(tmp_path: Path, train: Path) -> None:
    prepare(config_of(train), run=tmp_path, seed=1)
    before = content(tmp_path / "prepared")
    with pytest.raises(InputError, match=r"data\.subwords\.size: 90000 is more than"):
        prepare(config_of(train, subwords={"size": 90_000}), run=tmp_path, seed=1)
    assert content(tmp_path / "prepared") == before
    assert [path.name for path in tmp_path.glob(".prepared*")] == [".prepared.lock"]


def test_what_is_not_ours_is_not_replaced(tmp_path: Path, train: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    prepare(config_of(train, prepared=photos), run=tmp_path, seed=1)  # empty: fine
    other = tmp_path / "other"
    other.mkdir()
    (other / "me.jpg").touch()
    with pytest.raises(InputError, match="exists and is not a prepared corpus; name another folder"):
        prepare(config_of(train, prepared=other), run=tmp_path, seed=1, force=True)
    assert (other / "me.jpg").exists()


def test_a_link_to_another_disk_stays_a_link(tmp_path: Path, train: Path) -> None:
    (tmp_path / "big" / "disk").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "big" / "disk")
    for kind in ("word", "char"):
        prepare(config_of(train, prepared=tmp_path / "link", subwords={"kind": kind}), run=tmp_path, seed=1)
        assert (tmp_path / "link").is_symlink()
        assert Report.model_validate_json((tmp_path / "link" / "report.json").read_text()).pairs == 400


def test_what_cannot_be_written_is_said(tmp_path: Path, train: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"prepared: cannot be made: "):
        prepare(config_of(train), run=tmp_path / "file", seed=1)

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_folder, "sync_entry", full)
    with pytest.raises(InputError, match=r"prepared cannot be written: No space left on device"):
        prepare(config_of(train), run=tmp_path, seed=1)
    assert [path.name for path in tmp_path.glob(".prepared*")] == [".prepared.lock"]


def test_a_read_only_folder_can_be_used_as_it_is(tmp_path: Path, train: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_of(train, prepared=tmp_path / "shared")
    prepare(config, run=tmp_path, seed=1)
    (tmp_path / ".shared.lock").unlink()
    (tmp_path / ".shared.lock").mkdir()  # as good as no permission, which root would have all the same
    assert not remade(config, tmp_path)
    with pytest.raises(InputError, match="has to be made again but its parent is read-only"):
        prepare(config, run=tmp_path, seed=1, force=True)


def test_nothing_left_says_which_filter(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    train = write_pairs(tmp_path / "train.tsv", pairs)
    with pytest.raises(InputError, match=r"none of 400 training pairs is left \(400 too long\); relax the filters"):
        prepare(config_of(train, filters={"max_length": 1}), run=tmp_path, seed=1)
    copies = write_pairs(tmp_path / "copies.tsv", [(source, source) for source, _ in pairs])
    with pytest.raises(InputError, match=r"400 identical"):
        prepare(config_of(copies), run=tmp_path, seed=1)


@pytest.mark.parametrize("which", ["train", "valid", "test"])
def test_a_missing_file_is_named_before_any_work(tmp_path: Path, train: Path, which: str) -> None:
    with pytest.raises(InputError, match=r"nowhere: no such file$"):
        prepare(config_of(train, **{which: {"pairs": str(tmp_path / "nowhere")}}), run=tmp_path / "run", seed=1)


def start(config: DataConfig, run: Path, code: str = CODE) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, config.model_dump_json(), str(run)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# Makes prepare stop for good at a chosen point, and says so.
STOP_AT = """
import time
import nmt.workflows.build_corpus as builder
import nmt.workflows.prepare as workflow
import nmt.data.atomic_folder as atomic_folder
def stop(*arguments):
    print("there", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    "at",
    [
        "builder._store_train = stop",
        "atomic_folder.sync_entry = stop",
        "atomic_folder.recover = stop",
        "swap",
        "swapped",
    ],
)
def test_a_killed_prepare_leaves_nothing_that_is_trusted(
    tmp_path: Path, train: Path, pairs: list[tuple[str, str]], at: str
) -> None:
    config = config_of(train)
    prepare(config_of(train, subwords={"size": 100}), run=tmp_path, seed=1)
    if at == "swap":  # between the two renames
        at = "rename = atomic_folder.Path.rename\natomic_folder.Path.rename = lambda a, b: rename(a, b) and stop()\n"
        at += "atomic_folder._exchange = lambda a, b: False"
    if at == "swapped":  # after both names were exchanged
        at = "exchange = atomic_folder._exchange\natomic_folder._exchange = lambda a, b: exchange(a, b) and stop()"
    process = start(config, tmp_path, STOP_AT + at + "\n" + CODE)
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    process.send_signal(signal.SIGKILL)
    process.wait()

    found = prepare(config, run=tmp_path, seed=1)
    assert found.report.source.vocabulary == 120
    assert found.reused == at.startswith("exchange = ")  # only then it was whole and in place
    clean = prepare(config, run=tmp_path / "clean", seed=1)
    assert content(found.folder) == content(clean.folder)
    prepare(config, run=tmp_path, seed=1, force=True)
    assert [path.name for path in tmp_path.glob(".prepared*")] == [".prepared.lock"]


def test_two_at_once_do_the_work_once(tmp_path: Path, train: Path, pairs: list[tuple[str, str]]) -> None:
    processes = [start(config_of(train), tmp_path) for _ in range(3)]
    printed = sorted(process.communicate(timeout=60)[0] for process in processes)
    assert printed == ["False 400\n", "True 400\n", "True 400\n"]


def test_a_second_prepare_waits_and_says_so(tmp_path: Path, train: Path) -> None:
    with (tmp_path / ".prepared.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = start(config_of(train), tmp_path)
        assert process.stderr is not None
        assert "another process is making it; waiting" in process.stderr.readline()
        time.sleep(0.1)
        assert not (tmp_path / "prepared").exists()
    assert process.communicate(timeout=60)[0] == "False 400\n"


def test_open_stores_outlive_a_new_prepare(tmp_path: Path, train: Path, pairs: list[tuple[str, str]]) -> None:
    old = prepare(config_of(train), run=tmp_path, seed=1)
    expected = [old.train.source(index).tolist() for index in range(10)]
    prepare(config_of(train, subwords={"kind": "char"}), run=tmp_path, seed=1)
    assert [old.train.source(index).tolist() for index in range(10)] == expected


def test_a_second_process_opens_what_was_made(tmp_path: Path, train: Path) -> None:
    made: PreparedData = prepare(config_of(train), run=tmp_path, seed=1)
    process = start(config_of(train), tmp_path)
    assert process.communicate(timeout=60)[0] == "True 400\n"
    assert Store.open(made.folder / "train").source(7).tolist() == made.train.source(7).tolist()
    assert TokenizerPair.load(made.folder) == made.tokenizers


@pytest.mark.parametrize("count", [399, 401])
def test_a_corpus_that_changes_meanwhile_is_noticed(
    tmp_path: Path, train: Path, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    learn = build_corpus.train_tokenizers

    def grow(*arguments: Any) -> TokenizerPair:
        write_pairs(train, (pairs + pairs)[:count])
        return learn(*arguments)

    monkeypatch.setattr(build_corpus, "train_tokenizers", grow)
    with pytest.raises(InputError, match="changed while it was read"):
        prepare(config_of(train), run=tmp_path, seed=1)
