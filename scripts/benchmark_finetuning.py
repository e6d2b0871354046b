"""Fine-tuning for a new domain, of all weights and of low-rank adapters: BLEU on its valid, before and after.

    python scripts/benchmark_finetuning.py [--config configs/multi30k-de-en-tiny.yaml] [--set KEY=VALUE]
        [--corpus data/tatoeba-de-en] [--pairs 2000] [--rank 8] [--processes 2] [--out FOLDER]

Trains the model of the configuration, which --set changes, then fine-tunes it as `nmt init --from` says on the first
pairs of the new corpus: once all weights, once adapters, with twice the updates. The best of five validations counts,
update 0 among them; BLEU on valid of the old domain is reported beside it. A second call trains what is missing.
Prints a JSON line for each figure, and a table on stderr.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from measuring import plainly, print_table, report

import nmt
from nmt import experiment as experiments
from nmt.config.structure import dump
from nmt.core.device import compute
from nmt.data.config import CorpusConfig
from nmt.data.corpus import read_blocks
from nmt.extras.corpus.augment.text import write_lines
from nmt.extras.finetuning.adapters import add_adapters
from nmt.training.config import LowRankConfig


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=Path("configs/multi30k-de-en-tiny.yaml"))
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--corpus", type=Path, default=Path("data/tatoeba-de-en"), help="train.de.gz and so on")
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark-finetuning"))
    arguments = parser.parse_args()
    out, corpus, machine = arguments.out, arguments.corpus, compute("cpu", "auto")
    old = experiments.load(arguments.config, [*arguments.overrides, f"run={out / 'old'}"], with_corpora=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / "old.yaml").write_text(dump(old), encoding="utf-8")
    train(out / "old.yaml", arguments.processes)
    split(corpus, arguments.pairs, out)
    if not (out / "new.yaml").exists():
        given = [f"--source={out}/new.de", f"--target={out}/new.en", f"--valid-source={corpus}/valid.de.gz"]
        given += [f"--valid-target={corpus}/valid.en.gz", "--test-pairs=0", "--no-time"]
        run("init", str(out / "new.yaml"), f"--from={out / 'old'}", *given)
    domain = old.data.valid_corpora[0]
    lora = [f"training.lora={{rank: {arguments.rank}}}"]
    systems = {"all weights": ("all", 1, []), "adapters": ("adapters", 2, lora)}
    usual = experiments.load(out / "new.yaml").training.stopping.updates or 1
    gains = {}
    for name, (folder, times, settings) in systems.items():
        updates = times * usual
        settings += [f"training.stopping.updates={updates}", f"training.validation.every={max(updates // 4, 1)}"]
        settings += [f"run={out / folder}", f"data.old_domain={{source: {domain.source}, target: {domain.target}}}"]
        train(out / "new.yaml", arguments.processes, *settings)
        first, best = validations(out / folder)
        gains[name] = best["bleu"] - first["bleu"]
        report(f"{name}: BLEU before", first["bleu"], "", machine)
        report(f"{name}: BLEU after", best["bleu"], "", machine)
        report(f"{name}: gain", gains[name], "", machine)
        report(f"{name}: BLEU on the old domain before", first["bleu old domain"], "", machine)
        report(f"{name}: BLEU on the old domain after", best["bleu old domain"], "", machine)
    report("gain of adapters, of that of all weights", 100 * gains["adapters"] / gains["all weights"], "%", machine)
    report("weights trained with adapters", 100 * trained_share(out / "old", arguments.rank), "%", machine)
    print_table()


def split(corpus: Path, pairs: int, out: Path) -> None:
    """Writes the first pairs of the new corpus' train."""
    blocks = read_blocks(CorpusConfig(source=corpus / "train.de.gz", target=corpus / "train.en.gz"))
    sides: dict[str, list[str]] = {"de": [], "en": []}
    for block in blocks:
        sides["de"] += block.sources
        sides["en"] += block.targets
        if len(sides["de"]) >= pairs:
            break
    for language, lines in sides.items():
        write_lines(lines[:pairs], out / f"new.{language}")


def train(config: Path, processes: int, *settings: str) -> None:
    """Trains a model, or goes on training it."""
    run("train", str(config), f"--processes={processes}", "--device=cpu", *(f"--set={each}" for each in settings))


def run(*arguments: str) -> None:
    """Runs a command of nmt; if it fails, the script ends."""
    if code := subprocess.run([sys.executable, "-m", "nmt", *arguments], check=False).returncode:
        sys.exit(code)


def validations(run_folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Returns the validation before the first update, and the best one."""
    lines = (run_folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    found = [line for line in map(json.loads, lines) if line["kind"] == "valid"]
    return found[0], max(found, key=lambda line: line["bleu"])


def trained_share(run_folder: Path, rank: int) -> float:
    """Returns the number of parameters of the adapters, relative to that of the model."""
    model = nmt.load(run_folder, device="cpu").trained.model
    total = sum(each.numel() for each in model.parameters())
    add_adapters(model, LowRankConfig(rank=rank))
    return sum(each.numel() for each in model.parameters() if each.requires_grad) / total


if __name__ == "__main__":
    plainly(main)
