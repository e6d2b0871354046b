"""Trains a tiny model of each family that a configuration can build, and tells the hash of all that a checkpoint holds.

    python -m tests.workflows.families FOLDER

Standard output is one JSON object.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

from tests.workflows.runs import CONFIG, write_corpus

SIDES = ("encoder", "decoder")

TRANSFORMER = [f"model.{side}={{kind: transformer, size: 16, heads: 2, layers: 1, feed_forward: 24}}" for side in SIDES]

FAMILIES = {
    **{f"cell {cell}": [f"model.encoder.cell={cell}", f"model.decoder.cell={cell}"] for cell in ("gru",)},
    "residual layers": [
        f"model.{side}.{setting}" for side in SIDES for setting in ("layers=2", "residual=true")
    ],
    "variational dropout": ["model.dropout.variational=true"],
    "recompute": ["training.recompute=true"],
    **{
        f"context {kind}": [
            "model.attention.score=none",
            f"model.context={{kind: {kind}, summary: mean}}",
            "model.decoder.size=24",
        ]
        for kind in ("initial_state",)
    },
    **{f"weights {kind}": [f"model.attention.weights={kind}"] for kind in ("gumbel", "hard")},
    "transformer": TRANSFORMER,
    "transformer, rotary, swiglu": [
        *TRANSFORMER,
        *(f"model.{side}.{each}" for each in ("positions=rotary", "activation=swiglu") for side in SIDES),
    ],
    "sampled subwords": ["data.subwords={kind: unigram, size: 36, sampling: 0.2}", "data.prepared=sampled"],
    "R-Drop": ["training.r_drop=1.0"],
    "moving average": ["training.ema=0.9"],
    "guided attention": [
        "data.train={source: train.de, target: train.en, links: train.align}",
        "training.guided_attention={}",
        "data.prepared=linked",
    ],
    "minimum risk": ["training.risk={samples: 2}"],
    "free running": ["training.feed=free_running"],
    "scheduled sampling": [
        "training.feed={kind: scheduled_sampling, guess: sample, schedule: {kind: linear, end: 0.0, updates: 2}}"
    ],
    "bfloat16": [],
    "another seed": ["seed=2"],
}  # fmt: skip
"""Each with the keys that make it of the tiny recurrent model of the tests."""


def fingerprint(name: str) -> str:
    from nmt import experiment as experiments
    from nmt.workflows.train import train

    shared = ["training.stopping.updates=2", "data.prepared=prepared", "data.valid=null", f"run=runs/{name}"]
    experiment = experiments.load(Path("config.yaml"), [*shared, *FAMILIES[name]])
    run = train(experiment, device="cpu", precision="bfloat16" if name == "bfloat16" else "float32")
    digest = hashlib.sha256()
    for file in ("model.safetensors", "training.safetensors"):
        digest.update((run / "latest" / file).read_bytes())
    return digest.hexdigest()


def main(folder: Path) -> None:
    from nmt.core.log import Verbosity, set_verbosity

    set_verbosity(Verbosity.QUIET)
    os.chdir(folder)
    write_corpus(folder)
    lines = [line.split() for line in Path("train.de").read_text(encoding="utf-8").splitlines()]
    links = (" ".join(f"{word}-{word}" for word in range(len(line))) for line in lines)
    Path("train.align").write_text("".join(f"{each}\n" for each in links), encoding="utf-8")
    Path("config.yaml").write_text(CONFIG, encoding="utf-8")
    print(json.dumps({name: fingerprint(name) for name in FAMILIES}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
