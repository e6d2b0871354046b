"""The functions of `import nmt`, whose errors are in the terms of Python: ``device='gpu'`` and not ``--device gpu``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nmt
from nmt import plugins
from nmt.alignment.formats import Alignment
from nmt.config.structure import validate
from nmt.config.yaml_source import Document, parse_document, write
from nmt.core.errors import InputError
from nmt.core.files import make_folder, replace_file
from nmt.data.corpus_paths import refuse_missing
from nmt.evaluation.report import Evaluation
from nmt.experiment import Experiment
from nmt.experiment import load as load_experiment
from nmt.translator.arguments import Pair, check_pairs, library
from nmt.translator.translation import Results
from nmt.translator.translator import Translator

if TYPE_CHECKING:
    from torch import device as Device

__all__ = ["Translator", "align", "evaluate", "load", "train"]

load = library(nmt.load_translator)
load.__module__, load.__name__, load.__qualname__ = __name__, "load", "load"  # so that it can be pickled


@library
def train(
    config: str | Path | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    device: str | Device = "auto",
    precision: str = "auto",
    extend: bool = False,
    callbacks: Sequence[object] = (),
) -> Path:
    """Trains the model of a configuration, or resumes its training, and returns the run directory.

    ``config`` is a YAML file, or the same as a dictionary, in which ``pairs`` of a corpus may also be pairs of texts: a
    list, a generator or a data set of Hugging Face, which the run directory then holds. ``overrides`` are
    ``dotted.key=value`` changes of it. The corpus is prepared first if needed. ``extend`` allows another number of
    updates than the run was started with, even if its schedule depends on it.

    ``callbacks`` are objects with some of the methods ``on_update(trainer, figures)``, every ``training.log_every``
    updates, ``on_validation(trainer, figures)`` and ``on_checkpoint(trainer, folder)``. ``trainer.position`` and
    ``trainer.model`` are the current ones, and ``trainer.should_stop = True`` ends training after the update.

    Messages go to stderr, as with `nmt train`. Raises InputError for a fault of configuration, corpus or environment,
    and KeyboardInterrupt for Ctrl-C once the training is saved.
    """
    if isinstance(config, Mapping):
        parsed = parse_document(write(_plain(_with_files(config))), "config", overrides)
        marks = {place: mark if mark.startswith("--set") else "config" for place, mark in parsed.marks.items()}
        document = Document(parsed.tree, marks)  # a dictionary has no lines
        settings = validate(Experiment, document)
        refuse_missing(document)
    else:
        settings = load_experiment(Path(config), overrides, with_corpora=True)
    nmt.accelerate()
    from nmt.workflows import train as workflow

    return workflow.train(
        settings, device=str(device), precision=precision, extend=extend, callbacks=callbacks, threads=nmt.on_idle_cores
    )


@library
def evaluate(model: Translator | str | Path, pairs: Iterable[Pair]) -> Evaluation:
    """Computes the scores of a model's translations of the sources of pairs, and its perplexity and accuracy on their
    targets. Raises InputError for values that are not pairs."""
    from nmt.workflows.evaluate import Scoring, of_model

    translator = model if isinstance(model, Translator) else load(model)
    sources, targets = check_pairs(pairs, None, translator.trained.experiment.language_names)
    if not sources:
        raise InputError("pairs: there are none to evaluate")
    return of_model(translator, sources, targets, Scoring())


@library
def align(
    sources: Iterable[str] | Iterable[Pair],
    targets: Iterable[str] | None = None,
    *,
    text: bool = False,
    min_probability: float | None = None,
) -> Results[Alignment]:
    """The alignments of pairs without a model, by an aligner that is learnt from these very pairs, as with
    `nmt align --learn`. Give two lists, or pairs alone: a list, a generator or a data set of Hugging Face. Words are
    parted by white space, with ``text`` as in ordinary text; links have ``min_probability`` at least. Raises InputError
    for what is not pairs and where a side has no words."""
    align_pairs: Callable[[Sequence[str], Sequence[str], bool, float | None], list[Alignment]] = plugins.find(
        "parts", "align_pairs", "nmt.align"
    )
    return Results(align_pairs(*check_pairs(sources, targets), text, min_probability))


def _with_files(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replaces each corpus of pairs that are objects by two files in the run directory. A line break in a text becomes
    a space."""
    if not isinstance(config.get("data"), Mapping):
        return config
    data = dict(config["data"])
    for split, corpus in data.items():
        if isinstance(corpus, Mapping) and not isinstance(pairs := corpus.get("pairs"), str | Path | None):
            folder = Path(str(config.get("run"))) / "corpus"
            make_folder(folder, option="run:")
            files = {side: folder / f"{split}-{side}.txt" for side in ("source", "target")}
            for file, texts in zip(files.values(), check_pairs(pairs, None, corpus.get("languages")), strict=True):
                replace_file(file, "".join(re.sub(r"[\r\n]+", " ", text) + "\n" for text in texts))
            data[split] = {**{key: value for key, value in corpus.items() if key != "pairs"}, **files}
    return {**config, "data": data}


def _plain(value: Any) -> Any:
    """Converts paths and tuples to the types of YAML: text and lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)
