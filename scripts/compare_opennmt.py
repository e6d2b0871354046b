"""nmt and OpenNMT-py on one corpus: BLEU and chrF after the same minutes of training, with models of the same size.

    python scripts/compare_opennmt.py --onmt VENV/bin --minutes 20 [--config configs/tatoeba-de-en.yaml]
        [--set KEY=VALUE] [--processes 2 | --together] [--updates N] [--onmt-run FOLDER] [--split valid]
        [--output runs/compare-opennmt]

nmt trains as configured, with as many updates as the minutes allow by a measurement of some seconds, validations
included, or with --updates of them; the minutes that they took are told. OpenNMT-py has the same subwords, and the
sizes, dropout, batch size and peak rate of CONFIG, with its own schedule (noam, 500 updates of warm-up). It does not
validate, and is stopped when the minutes are over: its last checkpoint counts, of one every 50 updates. That schedule
does not depend on the minutes, so a longer training serves a shorter comparison too: --onmt-run FOLDER. Both translate
with beam 5. A second call trains what is missing. With --together both train at the same time, each on one core
(Linux).

VENV: pip install torch==2.13.0; pip install --no-deps OpenNMT-py==3.5.1; pip install configargparse pyahocorasick
sentencepiece sacrebleu pyyaml ctranslate2 tensorboard flask waitress pyonmttok rapidfuzz six setuptools; and two empty
modules, spacy.py and fasttext.py, which it imports and does not need here.

Prints a JSON line for each figure, and a table on stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import torch
from compare_attention import corpus
from measuring import plainly, print_table, report

import nmt
from nmt import experiment as experiments
from nmt.core.device import compute
from nmt.core.errors import InputError
from nmt.data.corpus import read_blocks
from nmt.data.prepared import opened
from nmt.data.tokenizer import Tokenizer
from nmt.evaluation.translation import scores
from nmt.experiment import Experiment
from nmt.extras.corpus.augment.text import write_lines
from nmt.models.transformer.config import TransformerEncoderConfig
from nmt.workflows.training_time import measure_training

WARM_UP, SAVE_EVERY, SAMPLE = 500, 50, 20_000
NMT = (sys.executable, "-m", "nmt")


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onmt", type=Path, required=True, help="folder of onmt_train and onmt_translate")
    parser.add_argument("--config", type=Path, default=Path("configs/tatoeba-de-en.yaml"))
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--processes", type=int, default=2, help="of nmt train; OpenNMT-py uses threads")
    parser.add_argument("--together", action="store_true", help="train both at the same time, each on one core")
    parser.add_argument("--updates", type=int, help="of nmt, where the measurement chooses too few or too many")
    parser.add_argument("--onmt-run", type=Path, help="folder of a longer training of OpenNMT-py")
    parser.add_argument("--split", choices=("valid", "test"), default="valid", help="test is for the last word")
    parser.add_argument("--output", type=Path, default=Path("runs/compare-opennmt"))
    arguments = parser.parse_args()
    out = arguments.output
    ours, theirs = out / "nmt", arguments.onmt_run or out / "onmt"
    overrides = [*arguments.overrides, f"run={ours}", "search.beam=5"]
    experiment = experiments.load(arguments.config, overrides, with_corpora=True)
    sources, references = corpus(experiment, arguments.split)
    machine = compute("cpu", "auto")
    if not (ours / "minutes.json").exists():
        subprocess.run([*NMT, "prepare", str(arguments.config), *(f"--set={each}" for each in overrides)], check=True)
    cores = [["taskset", "--cpu-list", str(core)] for core in (0, 1)] if arguments.together else [[], []]
    processes = 1 if arguments.together else arguments.processes
    with ThreadPoolExecutor(2 if arguments.together else 1) as executor:
        trainings = []
        if not (theirs / "minutes.json").exists():
            configure_onmt(experiment, theirs)
            command = [*cores[1], str(arguments.onmt / "onmt_train"), "-config", str(theirs / "config.yaml")]
            trainings.append(executor.submit(train_onmt, command, theirs, arguments.minutes))
        if not (ours / "minutes.json").exists():
            command = [*cores[0], *NMT, "train", str(arguments.config), *(f"--set={each}" for each in overrides)]
            command += [f"--processes={processes}", "--device=cpu"]
            count = arguments.updates or updates_in(arguments.minutes, experiment, processes)
            trainings.append(executor.submit(train, command, ours, count))
        for training in trainings:
            training.result()
    checkpoint = newest(theirs, arguments.minutes)
    outputs = {
        "nmt": [each.text for each in nmt.load(ours).translate(sources)],
        "OpenNMT-py": translate_onmt(arguments.onmt, checkpoint, theirs, experiment, sources),
    }
    done = json.loads((ours / "minutes.json").read_text(encoding="utf-8"))
    report("nmt: minutes", done["minutes"], "min", machine)
    report("nmt: updates", done["updates"], "", machine)
    report("OpenNMT-py: minutes, at most", arguments.minutes, "min", machine)
    report("OpenNMT-py: updates", int(re.findall(r"\d+", checkpoint.name)[-1]), "", machine)
    for name in outputs:
        for score, label in zip(
            scores(outputs[name], references, metrics=("bleu", "chrf")), ("BLEU", "chrF"), strict=True
        ):
            report(f"{name}: {label} ({arguments.split})", score.value, "", machine)
    print_table()


def updates_in(minutes: float, experiment: Experiment, processes: int) -> int:
    """Estimates the number of updates in these minutes."""
    blocks = (block for each in experiment.data.train_corpora for block in read_blocks(each))
    pairs = chain.from_iterable(zip(block.sources, block.targets, strict=True) for block in blocks)
    sample = [pair for pair, _ in zip(pairs, range(SAMPLE), strict=False)]
    if processes == 1:
        torch.set_num_threads(1)
    speed = measure_training(experiment, sample, device="cpu")
    return int(0.95 * 60 * minutes / speed.seconds)  # the rest are the start and the validations


def train(command: Sequence[str], folder: Path, updates: int) -> None:
    """Trains with nmt."""
    started = time.monotonic()
    subprocess.run([*command, f"--set=training.stopping.updates={updates}"], check=True)
    _done(folder, started, updates)


def _done(folder: Path, started: float, updates: int | None = None) -> None:
    seconds = time.monotonic() - started
    tree = {"started": time.time() - seconds, "minutes": seconds / 60, "updates": updates}
    (folder / "minutes.json").write_text(json.dumps(tree), encoding="utf-8")


def configure_onmt(experiment: Experiment, folder: Path) -> None:
    """Writes corpus and configuration for OpenNMT-py. Raises InputError for another architecture."""
    model, training = experiment.model, experiment.training
    if not isinstance(model.encoder, TransformerEncoderConfig):
        raise InputError("model.encoder: the comparison is of Transformers; set kind: transformer")
    tokenizers = opened(experiment.data, run=experiment.folder).tokenizers
    folder.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    data: dict[str, dict[str, str]] = {}
    for name, corpora in (("corpus", experiment.data.train_corpora), ("valid", experiment.data.valid_corpora)):
        blocks = [block for each in corpora for block in read_blocks(each)]
        sides = {
            "src": [pieces(tokenizers.source, line) for block in blocks for line in block.sources],
            "tgt": [pieces(tokenizers.target, line) for block in blocks for line in block.targets],
        }
        data[name] = {f"path_{side}": str(folder / f"{name}.{side}") for side in sides}
        for side, rows in sides.items():
            write_lines((" ".join(row) for row in rows), folder / f"{name}.{side}")
            counts.update(chain.from_iterable(rows))
    write_lines((f"{piece}\t{count}" for piece, count in counts.most_common()), folder / "vocabulary")
    size, peak = model.encoder.size, training.optimizer.learning_rate
    settings = {
        "data": data, "src_vocab": str(folder / "vocabulary"), "tgt_vocab": str(folder / "vocabulary"),
        "share_vocab": True, "share_embeddings": True, "share_decoder_embeddings": True, "position_encoding": True,
        "encoder_type": "transformer", "decoder_type": "transformer", "enc_layers": model.encoder.layers,
        "dec_layers": model.encoder.layers, "heads": model.encoder.heads, "hidden_size": size, "word_vec_size": size,
        "transformer_ff": model.encoder.feed_forward, "dropout": [model.dropout.layers],
        "attention_dropout": [model.dropout.attention],
        "batch_type": "tokens", "batch_size": training.batching.batch_tokens, "normalization": "tokens",
        "optim": "adam", "adam_beta2": 0.98, "decay_method": "noam", "warmup_steps": WARM_UP,
        "learning_rate": peak * (size * WARM_UP) ** 0.5, "label_smoothing": training.label_smoothing,
        "param_init": 0, "param_init_glorot": True, "max_grad_norm": 0, "train_steps": 10**6, "valid_steps": 10**6,
        "save_checkpoint_steps": SAVE_EVERY, "keep_checkpoint": -1, "save_model": str(folder / "model"),
        "report_every": SAVE_EVERY, "seed": experiment.seed,
    }  # fmt: skip
    (folder / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")  # YAML is a superset of JSON


def train_onmt(command: Sequence[str], folder: Path, minutes: float) -> None:
    """Trains with OpenNMT-py until the minutes are over. Raises InputError if it ends before."""
    started = time.monotonic()
    with (folder / "log.txt").open("w") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, env=_environment(), start_new_session=True)
        try:
            child.wait(60 * minutes)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # with its processes that read data
            child.wait()
        else:
            raise InputError(f"onmt_train ended by itself; see {folder / 'log.txt'}")
    _done(folder, started)


def pieces(tokenizer: Tokenizer, line: str) -> list[str]:
    """Splits a line into subwords."""
    return tokenizer.pieces(tokenizer.encode(line))


def newest(folder: Path, minutes: float) -> Path:
    """Finds the last checkpoint of OpenNMT-py's first minutes. Raises InputError if there is none."""
    started = json.loads((folder / "minutes.json").read_text(encoding="utf-8"))["started"]
    paths = sorted(folder.glob("model_step_*.pt"), key=lambda path: path.stat().st_mtime)
    whole = [path for path in paths if path.stat().st_size == max(each.stat().st_size for each in paths)]
    in_time = [path for path in whole if path.stat().st_mtime <= started + 60 * minutes]
    if not in_time:
        raise InputError(f"{folder}: no checkpoint after these minutes; give more --minutes")
    return in_time[-1]


def translate_onmt(
    onmt: Path, checkpoint: Path, folder: Path, experiment: Experiment, sources: Sequence[str]
) -> list[str]:
    """Returns translations by OpenNMT-py, with beam 5."""
    tokenizers = opened(experiment.data, run=experiment.folder).tokenizers
    source, target = folder / "source", folder / "translations"
    write_lines((" ".join(pieces(tokenizers.source, line)) for line in sources), source)
    options = {"-model": checkpoint, "-src": source, "-output": target, "-beam_size": 5, "-batch_size": 64}
    command = map(str, (onmt / "onmt_translate", *chain.from_iterable(options.items())))
    subprocess.run([*command], check=True, stdout=subprocess.DEVNULL, env=_environment())
    lines = target.read_text(encoding="utf-8").splitlines()
    return ["".join(line.split()).replace("▁", " ").strip() for line in lines]


def _environment() -> dict[str, str]:
    return {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}


if __name__ == "__main__":
    plainly(main)
