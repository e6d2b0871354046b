"""Text in another language is noticed, once; the figure is that of plain loops over the training corpus."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from pathlib import Path

from nmt.data.tokenizer import TokenizerPair
from tests.workflows.runs import nmt

OWN = "eins zwei drei.\nHund und Katze.\n" * 20
OTHER = "one two three.\ndog and cat.\n" * 20
WARNING = "warning: this text is unlike the source side of the training corpus"


def warnings(run: Path, text: str) -> list[str]:
    done = nmt("translate", run, "--beam", "1", folder=run.parent, stdin=text.encode())
    assert (done.returncode, done.stdout.count(b"\n")) == (0, text.count("\n"))
    return [line for line in done.stderr.decode().splitlines() if "unlike" in line]


def test_another_language_gets_one_warning(trained: Path, tmp_path: Path) -> None:
    assert warnings(trained / "run", OWN) == []
    (warning,) = warnings(trained / "run", OTHER)
    tokenizer = TokenizerPair.load(trained / "run").source
    train = (trained / "train.de").read_text(encoding="utf-8").splitlines()

    counts = Counter(token for line in train for token in tokenizer.encode(line))
    total = sum(counts.values()) + tokenizer.size / 2

    def bits(lines: list[str]) -> float:
        """Bits per character under the frequencies of single subwords, each counted half a time more."""
        tokens = [token for line in lines for token in tokenizer.encode(line)]
        cost = sum(-math.log2((counts[token] + 0.5) / total) for token in tokens)
        return cost / sum(len(piece) for piece in tokenizer.pieces(tokens))

    relative = bits(OTHER.splitlines()) / bits(train)
    assert relative > 1.5
    assert warning.startswith(f"{WARNING} (its subwords take {relative:.1f} times as many bits per character)")
    copy = tmp_path / "run"
    shutil.copytree(trained / "run", copy, symlinks=True, ignore=shutil.ignore_patterns("prepared"))
    assert warnings(copy, OTHER) == []
