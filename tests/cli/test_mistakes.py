"""Messages for mistakes on the command line, with what to type instead. None of them takes PyTorch."""

from __future__ import annotations

from tests.cli.conftest import mistakes

NO_RUN = "no such run directory, checkpoint or config"
UPDATES = "the number of updates is --set training.stopping.updates=16"
KEY = "a key of the configuration is set with --set training.optimizer.learning_rate=3"


MISTAKES = {
    "train": "CONFIG is missing: nmt train CONFIG (see nmt train --help)",
    "trian": "trian: no such command; did you mean train? (see nmt --help)",
    "--versoin": "--versoin: no such option; did you mean --version? (see nmt --help)",
    "translate --baem 3": "--baem: no such option; did you mean --beam? (see nmt translate --help)",
    "translate --beam": "--beam needs a value: --beam N (see nmt translate --help)",
    "translate --beam 0": "--beam: expected at least 1, found 0 (see nmt translate --help)",
    "translate --beam many": "--beam: expected a whole number, found many",
    "translate --top-p x": "--top-p: expected a number, found x",
    "serve --port 80000": "--port: expected at most 65535, found 80000",
    "translate --precision int4": "--precision int4: use one of auto, float32, tf32, bfloat16, float16, int8",
    "train c.yaml --precision int8": "--precision int8: use one of auto, float32, tf32, bfloat16, float16",
    # a text as an argument
    "translate LICENSE": f"LICENSE: {NO_RUN}; to translate a file: nmt translate --input LICENSE",
    "translate runs/z LICENSE": "to translate a file: nmt translate runs/z --input LICENSE",
    "translate 'Der Hund.'": f"Der Hund.: {NO_RUN}; to translate a text: echo 'Der Hund.' | nmt translate",
    "translate z 'Der Hund'": "to translate a text: echo 'Der Hund' | nmt translate z",
    # keys of the configuration
    "train c.yaml --lr 3": f"--lr: no such option; {KEY}",
    "train c.yaml --hiden 3": "--hiden: no such option (see nmt train --help)",
    # what other toolkits call it
    "translate --model runs/z": "--model: MODEL is an argument and not an option: nmt translate runs/z",
    "train --config=c.yaml": "--config: CONFIG is an argument and not an option: nmt train c.yaml",
    "translate --src x": "--src: no such option; use --input x (see nmt translate --help)",
    "score -src a -tgt b": "-src: no such option; use --source a",
    "evaluate --hyp x --ref=y": "--hyp: no such option; use --hypothesis x",
    "translate --beam_size=5": "--beam_size: no such option; use --beam 5",
    "translate --gpu 0": "--gpu: no such option; use --device cuda",
    "translate --precision fp16": "--precision fp16: use float16 (see nmt translate --help)",
    "align --min-confidence 0.5": "--min-confidence: no such option; use --min-probability 0.5",
    "align --format pdf": "--format pdf: use one of pharaoh, gold, tsv, jsonl, npz, heatmap, png, svg, html",
    "fast_align -i x": "fast_align: no such command; use nmt align",
    # too much
    "train --extend 16 c.yaml": f"--extend takes no value; {UPDATES}",
    "report --no-translations=yes": "--no-translations takes no value; leave out yes",
    "--version=1": "--version takes no value; leave out 1 (see nmt --help)",
    "export runs/z onnx": "onnx: is the value of an option: --to onnx",
    "info a b": "b: an argument too many: nmt info [MODEL]",
    "train my.de my.en": "CONFIG is a YAML file, which nmt init NAME FILE FILE writes for two files of text; not …",
}
test_mistakes = mistakes("", MISTAKES)
