"""Measures one trained system through the library: ``python -m comparison.measure REQUEST.json``.

Runs in a process of its own, so that systems can be measured side by side, each on one thread. Beside the figures it
writes the translations and the alignments of the gold pairs, from which the report and its pictures are made.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from comparison.budget import write_whole
from nmt.alignment import Method
from nmt.alignment.error_rate import Gold, score
from nmt.alignment.extract import Argmax, Extraction, Grow
from nmt.alignment.formats import Alignment, jsonl_line, read_gold
from nmt.alignment.views import View
from nmt.core.errors import InputError
from nmt.data.config import CorpusConfig
from nmt.data.corpus import read_blocks, read_lines
from nmt.evaluation.feeds import FEEDS
from nmt.evaluation.translation import scores
from nmt.experiment import Experiment

FORMAT = 2
"""Raise it when other figures are measured, or the same ones otherwise: then all is measured again."""

BEAM = 5

Split = Literal["valid", "test"]

METHODS: tuple[Method, ...] = ("attention", "gradient")
"""Where soft alignments come from: of those, what the model has."""

RULES: dict[str, Extraction] = {"grow": Grow(), "argmax": Argmax()}
"""How links are read off soft alignments."""


@dataclass(frozen=True)
class Request:
    """What is to be measured. An equal request need not be measured again."""

    checkpoint: str
    split: Split
    gold: tuple[str, str, str] | None
    """Files of sources, targets and their gold links."""
    output: str
    format: int = FORMAT

    @classmethod
    def load(cls, path: Path) -> Request:
        """What was written as JSON."""
        tree = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**tree, "gold": tuple(tree["gold"]) if tree["gold"] else None})

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"


def corpus(experiment: Experiment, split: Split) -> tuple[list[str], list[str]]:
    """Sources and references; of several test corpora, one after the other. Raises InputError where there is none."""
    data = experiment.data
    corpora: Sequence[CorpusConfig] = data.test_corpora if split == "test" else [data.valid] if data.valid else []
    if not corpora:
        raise InputError(f"--split {split}: the configuration has no data.{split}")
    blocks = [block for each in corpora for block in read_blocks(each)]
    return [line for block in blocks for line in block.sources], [line for block in blocks for line in block.targets]


def entropy(alignments: Sequence[Alignment]) -> float:
    """The mean over all target words of the entropy of a word's weights over source words, in bits."""
    bits: list[float] = []
    for alignment in alignments:
        p_TS = np.asarray(alignment.weights_TS, np.float64)
        bits.extend((-np.sum(p_TS * np.log2(np.where(p_TS > 0, p_TS, 1.0)), axis=1)).tolist())
    return float(np.mean(bits)) if bits else 0.0


def main(path: Path) -> None:
    """See the module's docstring."""
    import nmt

    request = Request.load(path)
    output = Path(request.output)
    output.mkdir(parents=True, exist_ok=True)
    translator = nmt.load(request.checkpoint, device="cpu", overrides=[f"search.beam={BEAM}"])
    experiment = translator.trained.experiment
    state = json.loads((translator.trained.checkpoint / "state.json").read_text(encoding="utf-8"))
    sources, references = corpus(experiment, request.split)
    figures: dict[str, Any] = {"updates": state["position"]["update"], "tokens": state["position"]["tokens"]}
    figures["precision"] = translator.trained.compute.precision
    figures["parameters"] = sum(each.numel() for each in translator.trained.model.parameters())

    started = time.process_time()
    translations = [each.text for each in translator.translate(sources)]
    figures["translation_seconds"] = time.process_time() - started
    bleu, chrf = scores(translations, references, metrics=("bleu", "chrf"))
    figures |= {"bleu": bleu.value, "chrf": chrf.value, "signatures": [bleu.signature, chrf.signature]}
    greedy = nmt.load(request.checkpoint, device="cpu", overrides=["search.beam=1"]).translate(sources)
    figures["bleu_greedy"] = scores([each.text for each in greedy], references, metrics=("bleu",))[0].value
    _write_lines(output / "translations.txt", translations)
    _write_lines(output / "greedy.txt", [each.text for each in greedy])

    for name in ("teacher_forcing", "free_running"):
        prediction = translator.predict(sources, references, FEEDS[name])
        figures[name] = {"perplexity": prediction.perplexity, "accuracy": prediction.accuracy}

    if "attention" in translator.aligner.methods:
        figures["entropy"] = entropy(translator.align(sources, references))
    if request.gold is not None:
        source, target, links = map(Path, request.gold)
        pairs = list(read_lines(source)), list(read_lines(target))
        gold = read_gold(links)
        methods = [method for method in METHODS if method in translator.aligner.methods]
        aligned = translator.aligner.align([View(method) for method in methods], *pairs)
        alignments = {view.method: found for view, found in aligned.items()}
        for method in methods:
            _write_alignments(output / f"{method}.jsonl", alignments[method])
        figures["error_rates"] = {method: _error_rates(alignments[method], gold) for method in methods}
    write_whole(output / "figures.json", json.dumps(figures, indent=1) + "\n")
    write_whole(output / "request.json", request.text())  # last: it says that all is there


def _error_rates(alignments: Sequence[Alignment], gold: Sequence[Gold]) -> dict[str, float]:
    """AER in per cent under each rule."""
    links = {name: [rule.links(each.weights_TS) for each in alignments] for name, rule in RULES.items()}
    return {name: 100 * score(each, gold).aer for name, each in links.items()}


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    write_whole(path, "".join(f"{line}\n" for line in lines))


def _write_alignments(path: Path, alignments: Sequence[Alignment]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{jsonl_line(alignment)}\n" for alignment in alignments)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
