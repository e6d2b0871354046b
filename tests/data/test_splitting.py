"""Pairs that are held out of a corpus."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from nmt.data.config import CorpusConfig
from nmt.data.splitting import survey, write_parts


def corpus(folder: Path, pairs: list[tuple[str, str]], name: str = "all.tsv") -> CorpusConfig:
    path = folder / name
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return CorpusConfig(pairs=path)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


PAIRS = [(f"quelle {n}", f"target {n}") for n in range(200)]
ODD = [("", "blank"), ("same", "same"), ("bell\a", "x"), ("  ", " ")]


@pytest.mark.parametrize("seed", range(3))
def test_every_pair_is_in_one_part_and_repeats_of_held_out_ones_in_none(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    pairs = PAIRS + ODD + draw.choices(PAIRS, k=150) + [(f" {source}", f"{target} ") for source, target in PAIRS[:50]]
    draw.shuffle(pairs)
    whole = corpus(tmp_path, pairs)
    found = survey(whole, most=30, seed=seed)
    assert (found.pairs, len(found.candidates), found.others) == (len(pairs), 30, True)
    hashes = {"valid": frozenset(found.candidates[:20]), "test": frozenset(found.candidates[20:])}
    parts = {name: (tmp_path / f"{name}.tsv",) for name in ("train", "valid", "test")}
    held = write_parts(whole, parts, hashes, seed=seed)
    written = {name: lines(files[0]) for name, files in parts.items()}
    assert (held.train, dict(held.held_out)) == (len(written["train"]), {"valid": 20, "test": 10})

    def key(line: str) -> tuple[str, ...]:
        return tuple(side.strip() for side in line.split("\t"))

    everything = Counter(f"{source}\t{target}" for source, target in pairs)
    together = Counter(line for each in written.values() for line in each)
    missing = everything - together
    assert not together - everything
    assert sum(missing.values()) == held.repeats
    out = {name: {key(line) for line in written[name]} for name in ("valid", "test")}
    assert not out["valid"] & out["test"]
    assert {key(line) for line in missing} <= out["valid"] | out["test"]
    assert not {key(line) for line in written["train"]} & (out["valid"] | out["test"])
    assert len(out["valid"]) == 20  # no pair twice
    assert all(key(f"{source}\t{target}") not in out["valid"] | out["test"] for source, target in ODD)


def test_what_is_held_out_goes_by_seed_and_pairs_not_by_order(tmp_path: Path) -> None:
    first = survey(corpus(tmp_path, PAIRS), most=10, seed=1)
    turned = survey(corpus(tmp_path, PAIRS[::-1] * 2), most=10, seed=1)
    assert turned.candidates == first.candidates
    assert survey(corpus(tmp_path, PAIRS), most=5, seed=1).candidates == first.candidates[:5]
    assert survey(corpus(tmp_path, PAIRS), most=10, seed=2).candidates != first.candidates


def test_a_survey_counts(tmp_path: Path) -> None:
    found = survey(corpus(tmp_path, [("ab ab.", "é 12"), ("ab ab.", "é 12"), ("b", "ab")]), most=9, seed=1)
    assert (found.pairs, found.target_letters, found.words) == (3, 4 + 4 + 2, 3)
    assert found.characters == len(set("ab .é12"))
    assert (len(found.candidates), found.others) == (2, False)
    assert sorted(found.sample) == [("ab ab.", "é 12"), ("b", "ab")]
    found = survey(corpus(tmp_path, [("a", "o\u0323\u0301na 中文"), ("b", "한")]), most=9, seed=1)
    assert found.target_letters == len("ona ") + 3 * 3


def test_pairs_that_are_known_are_not_held_out_again(tmp_path: Path) -> None:
    known = corpus(tmp_path, PAIRS[:190], "known.tsv")
    assert len(survey(corpus(tmp_path, PAIRS), most=50, seed=1, known=[known]).candidates) == 10


def test_two_files_stay_side_by_side(tmp_path: Path) -> None:
    for side, index in (("de", 0), ("en", 1)):
        text = "\r\n".join(pair[index] for pair in PAIRS)
        (tmp_path / f"all.{side}").write_bytes(text.encode())
    whole = CorpusConfig(source=tmp_path / "all.de", target=tmp_path / "all.en")
    found = survey(whole, most=7, seed=1)
    parts = {name: (tmp_path / f"{name}.de", tmp_path / f"{name}.en") for name in ("train", "test")}
    held = write_parts(whole, parts, {"test": frozenset(found.candidates)}, seed=1)
    assert (held.train, dict(held.held_out), held.repeats) == (193, {"test": 7}, 0)
    for source, target in parts.values():
        assert set(zip(lines(source), lines(target), strict=True)) <= set(PAIRS)
