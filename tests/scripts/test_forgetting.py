"""Derivatives by distance: against plain loops, and a picture of a small run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import forgetting  # noqa: E402


def test_quartiles_are_those_of_each_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting, "FEW", 3)
    matrices = [np.random.default_rng(seed).random((5 + seed, 9 - seed)).astype(np.float32) for seed in range(3)]
    for by, width in (("offset", 1), ("path", 1), ("path", 3)):
        expected: dict[int, list[float]] = {}
        for size_TS in matrices:
            T, S = size_TS.shape
            for t in range(1, T + 1):
                for s in range(1, S + 1):
                    # the last of S states and end-of-sentence's: S + 1 - s steps to the end, then t - 1 and one more
                    steps = t - s if by == "offset" else (S + 1 - s) + t
                    expected.setdefault(steps // width, []).append(float(size_TS[t - 1, s - 1]))
        found = forgetting.spreads(matrices, by, width)
        kept = {number: values for number, values in sorted(expected.items()) if len(values) >= 3}
        assert [each.number for each in found] == [len(values) for values in kept.values()]
        for each, (number, values) in zip(found, kept.items(), strict=True):
            assert each.distance == number * width + (width - 1) / 2
            np.testing.assert_allclose(each[1:4], np.percentile(values, [25, 50, 75]), rtol=1e-6)


def test_the_factor_is_that_of_a_power_law() -> None:
    found = [forgetting.Spread(step, 0, 3 * 0.8**step, 1, 50) for step in range(-3, 9)]
    assert forgetting.factor(found) == pytest.approx(0.8)
    assert np.isnan(forgetting.factor(found[:4]))


def test_a_table_and_a_picture(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(forgetting, "FEW", 1)
    run, picture = str(trained / "run"), tmp_path / "forgetting.svg"
    arguments = [run, "--source", str(trained / "test.de"), "--target", str(trained / "test.en"), "--by", "path"]
    monkeypatch.setattr(sys, "argv", ["forgetting.py", *arguments, "--output", str(picture)])
    forgetting.main()
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == ["distance", run]
    counts = sum(int(row.split()[-1].replace(",", "")) for row in rows[1:-1])
    encode = forgetting.load_trained(run, precision="float32").tokenizers.source.encode
    pairs = zip(*((trained / f"test.{side}").read_text().splitlines() for side in ("de", "en")), strict=True)
    assert counts == sum(len(encode(source)) * len(encode(target)) for source, target in pairs)
    assert rows[-1].startswith("per step")
    assert "recurrent steps from x to y" in picture.read_text(encoding="utf-8")
