"""`nmt prepare`: the corpus that is stored, its report, and what makes it anew; killed, at once, and on full disks."""

from __future__ import annotations

import fcntl
import functools
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

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
from tests.workflows.killing import fork

Pairs: TypeAlias = Sequence[tuple[str, str]]
Make: TypeAlias = Callable[..., PreparedData]
PAIRS = make_pairs(400)


def write_pairs(path: Path, pairs: Pairs) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8", newline="")
    return path


def config_of(path: Path, /, **data: Any) -> DataConfig:
    data = {"train": {"pairs": str(path)}, "subwords": {"size": 120}, **data}
    return DataConfig.model_validate_json(json.dumps(data, default=str))


@pytest.fixture
def train(tmp_path: Path) -> Path:
    return write_pairs(tmp_path / "train.tsv", PAIRS)


@pytest.fixture
def make(tmp_path: Path, train: Path) -> Make:
    """Prepares the corpus ``train``, with these keys of ``data`` and by default 120 subwords."""

    def run(*, run: Path = tmp_path, seed: int = 1, force: bool = False, **data: Any) -> PreparedData:
        return prepare(config_of(train, **data), run=run, seed=seed, force=force)

    return run


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def texts(store: Store) -> list[tuple[str, str]]:
    return [store.text(index) for index in range(len(store))]


def test_the_store_holds_the_encoded_corpus(tmp_path: Path, train: Path, make: Make) -> None:
    made = make(run=tmp_path / "run")
    assert (made.folder, made.reused, made.valid) == (tmp_path / "run" / "prepared", False, None)
    assert len(made.train) == len(PAIRS) == made.report.kept
    for index, (source, target) in enumerate(PAIRS):
        assert made.train.source(index).tolist() == made.tokenizers.source.encode(source)
        assert made.train.target(index).tolist() == made.tokenizers.target.encode(target)
        assert made.train.line(index) == (str(train), index + 1)
    assert not made.train.has_text


def test_every_filter_is_counted_with_its_lines(tmp_path: Path) -> None:
    good = PAIRS[:300]
    valid, test = ("der Hund läuft", "the dog runs"), ("die Katze schläft", "the cat sleeps")
    long = " ".join(["der Hund"] * 150)
    bad: dict[str, Pairs] = {
        "empty": [("", "x"), ("x", " \u3000"), ("\u200b", "normalised away")],
        "control characters": [("a\0b", "x y")],
        "identical": [("same thing", " same thing")],
        "held out": [valid, test],
        "duplicate": [good[3], (f" {good[4][0]} ", good[4][1])],
        "too long": [(long, "x"), ("x", long)],
        "length ratio": [("." * 60, "a")],
    }
    rows = [*good, *(pair for pairs in bad.values() for pair in pairs), PAIRS[301], *[("", "again")] * 15]
    a, b = (
        write_pairs(tmp_path / name, pairs)
        for name, pairs in (("a.tsv", rows), ("b.tsv", [good[0], ("ganz neu", "all new")]))
    )
    parts = {
        "train": [{"pairs": a}, {"pairs": b}],
        "valid": {"pairs": write_pairs(tmp_path / "valid.tsv", [valid, ("", "x")])},
        "test": [{"pairs": write_pairs(tmp_path / "test.tsv", [test])}],
    }
    made = prepare(config_of(a, **parts), run=tmp_path / "run", seed=1)
    first, second = made.report.corpora

    expected: dict[str, list[int]] = {"near duplicate": [], "no pair": []}  # which are kept unless asked for
    line = 301
    for name, pairs in bad.items():
        expected[name] = list(range(line, line + len(pairs)))
        line += len(pairs)
    expected["empty"] += range(314, 329)
    assert {name: (drop.pairs, list(drop.first_lines)) for name, drop in first.dropped.items()} == {
        name: (len(lines), lines[:10]) for name, lines in expected.items()
    }
    assert (first.pairs, first.kept) == (328, 301)
    assert (second.kept, second.dropped["duplicate"].first_lines) == (1, (1,))
    lines = [made.train.line(index) for index in (299, 300, 301)]
    assert lines == [(str(a), 300), (str(a), 313), (str(b), 2)]

    assert made.report.valid is not None
    assert made.report.valid.blank.first_lines == (2,)
    table = "\n".join(report_table(made.report))
    assert "18   lines 301, 302, 303, 314, 315, 316, 317, 318, 319, 320, …\n" in table
    assert "1   line 304\n" in table


def test_rows_that_are_no_pairs_join_the_report(train: Path, make: Make) -> None:
    write_pairs(train, PAIRS[:100])
    train.write_bytes(b"no pair\n" + train.read_bytes() + b"gr\xfcn\tgreen\n")
    made = make()
    (corpus,) = made.report.corpora
    assert (corpus.pairs, corpus.kept, corpus.dropped["no pair"].first_lines) == (102, 100, (1, 102))
    assert any(line.split()[1:4] == ["no", "pair", "2"] for line in report_table(made.report))
    assert made.train.line(0) == (str(train), 2)
    with pytest.raises(InputError, match="2 of 102 rows are no pairs: 1 without exactly one TAB, 1 not UTF-8"):
        make(faulty="refuse")


def test_near_duplicates_are_told_and_dropped_where_asked(train: Path, make: Make) -> None:
    (source, target), count = PAIRS[7], len(PAIRS)
    near = [(source.upper(), f"{target} !"), (f"{source} 2.", target), (f"{source}?", "something else")]
    write_pairs(train, [*PAIRS, PAIRS[7], *near])
    told = make()
    (corpus,) = told.report.corpora
    assert (corpus.kept, corpus.near_duplicates.first_lines) == (count + 3, (count + 2, count + 3))
    assert (corpus.dropped["duplicate"].first_lines, corpus.dropped["near duplicate"].pairs) == ((count + 1,), 0)
    (row,) = (line.split() for line in report_table(told.report) if line.startswith("    near "))
    assert row == ["near", "duplicates", "2", "kept;", "lines", f"{count + 2},", f"{count + 3}"]
    dropped = make(filters={"near_duplicates": True})
    (corpus,) = dropped.report.corpora
    assert not dropped.reused
    assert (corpus.kept, corpus.near_duplicates.pairs) == (count + 1, 0)
    assert corpus.dropped["near duplicate"].first_lines == (count + 2, count + 3)
    assert dropped.train.line(count).number == count + 4
    with pytest.raises(ValueError, match="near_duplicates drops equal pairs too"):
        make(filters={"near_duplicates": True, "duplicates": False})


def test_filters_off_keep_everything_but_the_blank(tmp_path: Path, train: Path, make: Make) -> None:
    odd = [PAIRS[0], PAIRS[0], ("same", "same"), ("a\x01b", "x"), ("der " * 150, "x"), ("", "x")]
    write_pairs(train, PAIRS + odd)
    off = {"max_length": 1000, "max_ratio": 1000, "identical": False, "duplicates": False, "control_characters": False}
    valid = {"pairs": write_pairs(tmp_path / "valid.tsv", PAIRS[:5])}
    made = make(filters={**off, "held_out": "none"}, valid=valid)
    assert len(made.train) == made.train.line(len(made.train) - 1).number == len(PAIRS) + 5


def test_valid_is_kept_whole_with_its_text_as_is_what_is_sampled(tmp_path: Path, make: Make) -> None:
    lines = [("der Hund", "the dog"), ("", ""), ("x " * 300, "y"), ("gleich", "gleich"), ("a\x01b", "\u2028")]
    valid = {"pairs": write_pairs(tmp_path / "valid.tsv", lines)}
    made = make(valid=valid, subwords={"size": 120, "sampling": 0.1})
    assert made.valid is not None
    assert texts(made.valid) == lines
    assert texts(made.train) == [pair for pair in PAIRS if pair != lines[0]]
    assert made.report.valid is not None
    assert made.report.valid.too_long.first_lines == (3,)


def test_the_report_counts_what_is_stored(tmp_path: Path, make: Make) -> None:
    made = make(valid={"pairs": write_pairs(tmp_path / "valid.tsv", [("Ωmega", "the dog")])})
    report = made.report
    assert Report.model_validate_json((made.folder / "report.json").read_text()) == report
    lengths = np.array([len(made.train.target(index)) for index in range(len(made.train))])
    assert report.target.tokens == lengths.sum()
    assert report.target.words == sum(len(target.split()) for _, target in PAIRS)
    assert report.target.tokens_per_word == pytest.approx(report.target.tokens / report.target.words)
    assert report.source.vocabulary == made.tokenizers.source.size == 120
    for name, percent in [("least", 0), ("25%", 25), ("median", 50), ("99%", 99), ("most", 100)]:
        assert report.target.lengths[name] == np.percentile(lengths, percent, method="inverted_cdf")
    assert report.valid is not None
    assert (report.source.unknown, report.valid.unknown[0] > 0, report.valid.unknown[1]) == (0, True, 0)


def test_the_report_has_the_shares_of_lines(train: Path, make: Make) -> None:
    lines = [f"Hund {number}. Und noch einer." for number in range(300)]
    lines += [f"Nr. {number}" for number in range(1500)] + [f"{number}, 5 %" for number in range(200)]
    write_pairs(train, [(line, f"the {number}") for number, line in enumerate(lines)])
    report = make().report
    assert (report.several, report.letterless) == (300 / 2000, 200 / 2000)


def test_it_is_a_function_of_input_config_and_seed(
    tmp_path: Path, train: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks and threads do not matter."""
    write_pairs(train, (PAIRS + PAIRS[:50] + [("", "x")]) * 2)
    subwords = {"size": 120, "training_sentences": 200}
    whole, other = (content(make(run=tmp_path / f"{n}", seed=n, subwords=subwords, workers=1).folder) for n in (1, 2))
    monkeypatch.setattr(build_corpus, "read_blocks", functools.partial(read_blocks, size=7))
    assert content(make(run=tmp_path / "blocks", subwords=subwords, workers=3).folder) == whole
    assert whole["subwords.model"] != other["subwords.model"]


def test_nothing_is_redone_unless_something_changed(
    tmp_path: Path, train: Path, make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not make().reused
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "prepared").rglob("*")}
    capsys.readouterr()
    again = make()
    assert again.reused
    assert "up to date" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "prepared").rglob("*")} == before
    assert again.train.source(3).tolist() == again.tokenizers.source.encode(PAIRS[3][0])

    train.touch()
    assert make().reused
    stat = train.stat()
    train.write_bytes(train.read_bytes().replace(b"Hund", b"Mund", 1))  # the same size and the same time
    os.utime(train, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    shorter: dict[str, Any] = {"filters": {"max_length": 5}}
    for change in ({}, {"seed": 2}, {"seed": 2, "force": True}, shorter):
        assert not make(**change).reused, change
    assert make(**shorter, workers=2).reused
    assert [path.name for path in tmp_path.glob(".prepared*")] == [".prepared.lock"]


def test_rare_words_are_told_and_make_another_folder(train: Path, make: Make) -> None:
    config = {"kind": "word", "joint": False}
    assert not any("rarer words" in line for line in report_table(make(subwords=config).report))
    made = make(subwords={**config, "min_frequency": 3})
    assert not made.reused
    assert make(subwords={**config, "min_frequency": 3}).reused
    counts = Counter(word for source, _ in PAIRS for word in source.split())
    unknown = {word for word, count in counts.items() if count < 3}
    assert made.report.source.rare == len(unknown) > 0
    assert made.report.source.unknown == sum(counts[word] for word in unknown) / sum(counts.values())
    (row,) = (line.split() for line in report_table(made.report) if "rarer words" in line)
    assert row == ["rarer", "words", str(made.report.source.rare), str(made.report.target.rare)]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *((name, "{") for name in ("report.json", "subwords.model", "train/source.bin", "train/store.json")),
        ("state.json", '{"key": 0}'),  # without it the folder might be anything
    ],
)
def test_a_damaged_folder_is_made_again(tmp_path: Path, make: Make, name: str, data: str) -> None:
    expected = content(make().folder)
    (tmp_path / "prepared" / name).write_text(data)
    assert not make().reused
    assert content(tmp_path / "prepared") == expected


def test_a_failure_leaves_the_folder_as_it_was(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"prepared: cannot be made: "):
        make(run=tmp_path / "file")
    before = content(make().folder)
    with pytest.raises(InputError, match=r"data\.subwords\.size: 90000 is more than"):
        make(subwords={"size": 90_000})

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_folder, "sync_entry", full)
    with pytest.raises(InputError, match=r"prepared cannot be written: No space left on device"):
        make(force=True)
    assert content(tmp_path / "prepared") == before
    assert [path.name for path in tmp_path.glob(".prepared*")] == [".prepared.lock"]


def test_what_is_not_ours_is_not_replaced_and_a_link_stays_a_link(tmp_path: Path, make: Make) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    (tmp_path / "link").symlink_to(photos)
    for kind in ("word", "char"):  # empty at first: fine
        make(prepared=tmp_path / "link", subwords={"kind": kind})
        assert (tmp_path / "link").is_symlink()
        assert Report.model_validate_json((photos / "report.json").read_text()).pairs == 400
    other = tmp_path / "other"
    other.mkdir()
    (other / "me.jpg").touch()
    with pytest.raises(InputError, match="exists and is not a prepared corpus; name another folder"):
        make(prepared=other, force=True)
    assert (other / "me.jpg").exists()


def test_a_read_only_folder_can_be_used_as_it_is(tmp_path: Path, make: Make) -> None:
    make(prepared=tmp_path / "shared")
    (tmp_path / ".shared.lock").unlink()
    (tmp_path / ".shared.lock").mkdir()  # as good as no permission, which root would have all the same
    assert make(prepared=tmp_path / "shared").reused
    with pytest.raises(InputError, match="has to be made again but its parent is read-only"):
        make(prepared=tmp_path / "shared", force=True)


def test_nothing_left_says_which_filter(train: Path, make: Make) -> None:
    with pytest.raises(InputError, match=r"none of 400 training pairs is left \(400 too long\); relax the filters"):
        make(filters={"max_length": 1})
    write_pairs(train, [(source, source) for source, _ in PAIRS])
    with pytest.raises(InputError, match=r"400 identical"):
        make()


@pytest.mark.parametrize("which", ["train", "valid", "test"])
def test_a_missing_file_is_named_before_any_work(tmp_path: Path, make: Make, which: str) -> None:
    with pytest.raises(InputError, match=r"nowhere: no such file$"):
        make(**{which: {"pairs": tmp_path / "nowhere"}})


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def then_die(owner: object, name: str) -> None:
    """Has a function end this process after its work."""
    work = getattr(owner, name)
    setattr(owner, name, lambda *arguments: work(*arguments) and die())


def die_between_two_renames() -> None:
    setattr(atomic_folder, "_exchange", lambda *_: False)  # noqa: B010
    then_die(Path, "rename")


@pytest.mark.parametrize(
    ("arm", "is_complete"),
    [
        (lambda: setattr(build_corpus, "_store_train", die), False),
        (lambda: setattr(atomic_folder, "sync_entry", die), False),
        (lambda: setattr(atomic_folder, "recover", die), False),
        (die_between_two_renames, False),
        (lambda: then_die(atomic_folder, "_exchange"), True),
    ],
    ids=["stored", "synced", "recovered", "renamed", "exchanged"],
)
def test_a_killed_prepare_leaves_nothing_that_is_trusted(
    tmp_path: Path, make: Make, arm: Callable[[], None], is_complete: bool
) -> None:
    make(subwords={"size": 100})

    def work() -> None:
        arm()
        make()

    assert fork(work)[0] == -signal.SIGKILL
    found = make()
    assert (found.report.source.vocabulary, found.reused) == (120, is_complete)
    assert content(found.folder) == content(make(run=tmp_path / "clean").folder)
    make(force=True)
    assert [path.name for path in tmp_path.glob(".prepared*")] == [".prepared.lock"]


def reused(train: Path, run: Path) -> bool:
    return prepare(config_of(train), run=run, seed=1).reused


def test_several_at_once_do_the_work_once(tmp_path: Path, train: Path, make: Make) -> None:
    with get_context("fork").Pool(3) as pool:
        assert sorted(pool.starmap(reused, [(train, tmp_path)] * 3, chunksize=1)) == [False, True, True]
    made = make()
    assert (made.reused, len(made.train)) == (True, 400)
    assert Store.open(made.folder / "train").source(7).tolist() == made.train.source(7).tolist()
    assert TokenizerPair.load(made.folder) == made.tokenizers


def test_a_second_prepare_waits_and_says_so(tmp_path: Path, train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / ".prepared.lock").open("w") as lock, ThreadPoolExecutor() as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = pool.submit(reused, train, tmp_path)
        time.sleep(0.3)
        assert "another process is making it; waiting" in capsys.readouterr().err
        assert not (tmp_path / "prepared").exists()
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert second.result(60) is False


def test_open_stores_outlive_a_new_prepare(make: Make) -> None:
    old = make()
    expected = [old.train.source(index).tolist() for index in range(10)]
    make(subwords={"kind": "char"})
    assert [old.train.source(index).tolist() for index in range(10)] == expected


@pytest.mark.parametrize("count", [399, 401])
def test_a_corpus_that_changes_meanwhile_is_noticed(
    train: Path, make: Make, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    learn = build_corpus.train_tokenizers

    def grow(*arguments: Any) -> TokenizerPair:
        write_pairs(train, (PAIRS + PAIRS)[:count])
        return learn(*arguments)

    monkeypatch.setattr(build_corpus, "train_tokenizers", grow)
    with pytest.raises(InputError, match="changed while it was read"):
        make()
