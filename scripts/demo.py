"""The main job from end to end, on the corpus that ships: what ``make demo`` runs.

Prepares, trains, translates, evaluates and aligns with the commands that a user would type, shows each, and ends with
what came out. Where the run directory already holds the trained model, training has nothing left to do.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from nmt.alignment.error_rate import score
from nmt.alignment.formats import read_gold
from nmt.alignment.link_files import read_links

CONFIG = Path("configs/de-en.yaml")
RUN = Path("runs/de-en")
DATA = Path("data/de-en")
OUT = RUN / "demo"
SHOWN = (3, 4, 5, 6, 7)
"""Lines of the test set, from 1, that are shown."""


def nmt(*arguments: str | Path) -> str:
    """Runs a command of the toolkit and returns what it wrote to stdout; ends the demo if it fails."""
    print("\n$ nmt", *arguments, flush=True)
    done = subprocess.run([sys.executable, "-m", "nmt", *map(str, arguments)], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout.decode()


def main() -> None:
    """See the module's docstring."""
    started = time.monotonic()
    nmt("prepare", CONFIG)
    nmt("train", CONFIG)
    OUT.mkdir(parents=True, exist_ok=True)
    nmt("translate", RUN, "--input", DATA / "test.de", "--output", OUT / "test.en")
    figures: dict[str, tuple[float, float]] = {}
    for name in ("test", "hard"):
        source, target, gold = (DATA / f"{name}.{kind}" for kind in ("de", "en", "align"))
        scored = json.loads(nmt("evaluate", RUN, "--source", source, "--reference", target, "--json"))
        links = OUT / f"{name}.align"
        nmt("align", RUN, "--source", source, "--target", target, "--gold", gold, "--output", links)
        figures[name] = (
            scored["BLEU"]["value"],
            100 * score([pair.links for pair in read_links(links)], read_gold(gold)).aer,
        )
    pictures = draw()
    report(figures, pictures, time.monotonic() - started)


def draw() -> Path:
    """Draws heatmaps of the shown sentences."""
    for kind in ("de", "en", "align"):
        lines = (DATA / f"test.{kind}").read_text(encoding="utf-8").split("\n")
        chosen = "".join(lines[number - 1] + "\n" for number in SHOWN)
        (OUT / f"shown.{kind}").write_text(chosen, encoding="utf-8")
    pictures = OUT / "heatmaps"
    nmt("align", RUN, "--source", OUT / "shown.de", "--target", OUT / "shown.en", "--gold", OUT / "shown.align",
        "--format", "png", "--output", pictures)  # fmt: skip
    return pictures


def report(figures: dict[str, tuple[float, float]], pictures: Path, seconds: float) -> None:
    """Prints the results."""
    german = (DATA / "test.de").read_text(encoding="utf-8").split("\n")
    english = (OUT / "test.en").read_text(encoding="utf-8").split("\n")
    print(f"\n{'-' * 100}\nDone in {seconds:.0f} s.\n")
    for number in SHOWN:
        print(f"  {german[number - 1]}\n  -> {english[number - 1]}\n")
    for name, (bleu, aer) in figures.items():
        print(f"  {name:<5} BLEU {bleu:5.1f}   AER {aer:5.1f} %")
    print(f"\n  model            {RUN}\n  attention heatmap {pictures / '000001.png'}")
    print("\nTry: echo 'Die Rosen wachsen im Garten.' | .venv/bin/nmt translate")


if __name__ == "__main__":
    main()
