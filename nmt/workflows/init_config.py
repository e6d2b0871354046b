"""A configuration for the user's own files, and the pairs that are held out of them for validation and test.

Its sizes depend on the corpus and the machine, and comments give the reasons. The smallest two are the models that
README.md and docs/results.md measure. The others follow Vaswani et al. 2017, table 3 (base), on CUDA; on a CPU they are
models that train in about a day.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from textwrap import indent
from typing import TypeAlias

from nmt import experiment as experiments
from nmt import plugins
from nmt.config.structure import parse_document, validate
from nmt.config.yaml_source import write
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.data.atomic_folder import locked, replace_folder
from nmt.data.config import MANY_IDENTICAL, CorpusConfig, TrainingCorpusConfig
from nmt.data.corpus import read_blocks
from nmt.data.splitting import Held, Survey, survey, write_parts
from nmt.data.words import lacks_spaces
from nmt.experiment import Experiment
from nmt.translator.find_run import find_checkpoint, run_of

VALIDATING = 0.1
"""Share of the time of a training that is reserved for its validations."""

ENOUGH, TOO_FEW = 2, 8
"""Divisors of the usual number of updates. If --minutes allow for fewer than the usual number divided by the first, a
smaller model is trained; fewer than the usual number divided by the second teach hardly anything."""

VALIDATIONS = 10
"""Usual number of validations of a training."""

MOST_HELD_OUT = 1000
"""Number of pairs of a part for which the user gives no number; in a small corpus it is a twentieth of the pairs."""

MOST_BYTES = 200
"""Maximum length of a NAME, with room for the endings of temporary files."""

LEAST_LINKED = 20
"""Number of pairs from which on the text aligner finds links in about all; of three, it may find none."""

UNFINISHED = ".unfinished"
"""File in the folder of the parts until the configuration is written, so that the same command can be repeated after it
was killed."""


@dataclass(frozen=True)
class CorpusParts:
    """The user's corpora, and the numbers of pairs to hold out for the others; None means a number that suits the
    corpus."""

    train: CorpusConfig
    valid: CorpusConfig | None
    test: CorpusConfig | None
    valid_pairs: int | None = None
    test_pairs: int | None = None

    @property
    def corpora(self) -> dict[str, CorpusConfig]:
        """Returns the parts that are files of the user."""
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: corpus for name, corpus in parts.items() if corpus is not None}

    @property
    def held_out(self) -> dict[str, int | None]:
        """Returns the parts to hold out of the training pairs."""
        both = (("valid", self.valid, self.valid_pairs), ("test", self.test, self.test_pairs))
        return {name: count for name, corpus, count in both if corpus is None and count != 0}


@dataclass(frozen=True)
class Speed:
    """The speed of a training on this machine."""

    seconds: float
    """Seconds of an update, without validations."""
    machine: str
    validation: float = 0.0
    """Seconds of a validation per pair, by a model that has learnt little and writes long translations."""
    alone: float | None = None
    """Seconds of an update without the other programs that kept the machine busy; None means that it was idle."""


Measure: TypeAlias = Callable[[Experiment, Sequence[tuple[str, str]]], Speed]
"""Function that measures the training of a configuration on some of its pairs, such as the one in
``nmt.workflows.training_time``."""


def init_config(
    name: str, parts: CorpusParts, *, seed: int, cuda: bool, measure: Measure | None = None,
    minutes: float | None = None, start_from: str | None = None,
) -> Path:  # fmt: skip
    """Writes a configuration for a corpus, ``NAME.yaml``, and where parts are to be held out, all parts to
    ``data/NAME``; of few pairs a plug-in (part ``write_links``) writes the word links there, too. Returns the
    configuration. With ``measure`` it says how long training will take; with ``minutes`` too there are as many updates
    as fit. ``start_from`` is a run to fine-tune. Raises InputError for files that are no corpus, for what would be
    overwritten, and where nothing can be measured."""
    path, run, folder = places(name)
    links = folder / "train.links"
    if links.exists() and not (folder / UNFINISHED).exists():
        raise InputError(f"{links}: is there already; give another NAME, or delete it")
    tuned = None if start_from is None else size_of_run(start_from)
    most = sum(MOST_HELD_OUT if count is None else count for count in parts.held_out.values())
    others = [corpus for part, corpus in parts.corpora.items() if part != "train"]
    found = survey(parts.train, most=most, seed=seed, known=others)
    if found.identical == found.pairs:
        raise InputError(f"{parts.train.name}: both sides are the same in all {found.pairs:,} pairs")
    if found.identical > MANY_IDENTICAL * found.pairs:
        found = survey(parts.train, most=most, seed=seed, known=others, keep_identical=True)
    corpora, held = parts.corpora, Held(found.pairs, {}, 0)
    if parts.held_out:
        held, written = _hold_out(parts, found, folder, seed)
        corpora |= written
    tokens = target_tokens(found, held.train)
    size = size_for(tokens, cuda=cuda)  # few pairs gain more from many small updates, also in fine-tuning
    size = size if tuned is None else replace(tuned, batch_tokens=min(tuned.batch_tokens, size.batch_tokens))
    text_for = partial(config_text, path=path, run=run, found=found, train_pairs=held.train)
    text_for = partial(text_for, corpora=corpora, links=links, cuda=cuda, seed=seed, changes=_changes(found))

    def measured(size: Size) -> Speed:
        assert measure is not None
        text = text_for(size=size, updates=updates_for(size, tokens))
        return measure(validate(Experiment, parse_document(text, str(path))), found.sample)

    speed: Speed | None = None
    updates, validations, usual = updates_for(size, tokens), VALIDATIONS, ""
    if minutes is not None:
        pairs = sum(len(block.sources) for block in read_blocks(corpora["valid"])) if "valid" in corpora else 0
        speed = measured(size)
        while updates_in(minutes, speed, pairs)[0] * ENOUGH < updates_for(size, tokens) and size.smaller is not None:
            size = size.smaller
            speed = measured(size)
        updates, validations = updates_in(minutes, speed, pairs)
        usual = f"; without --minutes there would be {updates_for(size, tokens):,}"
        if updates * TOO_FEW < updates_for(size, tokens):
            enough = updates_for(size, tokens) // ENOUGH
            seconds = enough * speed.seconds
            needed = max(seconds / (1 - VALIDATING), seconds + pairs * speed.validation)  # at least one validation
            log.warning(
                f"--minutes {minutes:g}: {updates:,} updates teach hardly anything; --minutes {math.ceil(needed / 60)} "
                f"would pay for {enough:,}, which do"
            )
    _say("corpus", f"{found.pairs:,} pairs")
    if held.held_out:
        uses = {"valid": "validate", "test": "test"}
        split = ", ".join(f"{count:,} to {uses[part]}" for part, count in held.held_out.items())
        repeats = f"; {held.repeats:,} repeats of these left out" if held.repeats else ""
        _say("split", f"{held.train:,} pairs to train on, {split}{repeats}: {folder}")
    amount = f"{held.train:,} pairs, about {round(tokens, 1 - len(str(tokens // 10))):,} target subwords,"
    _say("model", f"{size.name}, for {amount} on {'CUDA' if cuda else 'a CPU'}")
    if is_guided(size, found):
        folder.mkdir(parents=True, exist_ok=True)
        write_links: Callable[[CorpusConfig, Path], None] = plugins.find("parts", "write_links", "nmt init")
        write_links(corpora["train"], links)
    with whole_file(path) as unfinished:
        unfinished.write_text(text_for(size=size, updates=updates, validations=validations), encoding="utf-8")
    (folder / UNFINISHED).unlink(missing_ok=True)
    _say("wrote", str(path))
    if measure is not None:
        try:
            speed = speed or measured(size)
            time = f"{_duration(updates * speed.seconds)} for {updates:,} updates on this machine ({speed.machine}"
            if speed.alone is not None:
                time += f", busy with other programs: alone {_duration(updates * speed.alone)}"
            _say("time", f"{time}), and validations{usual}")
        except InputError as error:
            _say("time", f"not measured: {error}")
    _say("next", f"nmt train {shlex.quote(str(path))}")
    return path


def updates_in(minutes: float, speed: Speed, pairs: int) -> tuple[int, int]:
    """Computes the number of updates in a number of minutes, and the number of validations of ``pairs`` pairs among
    them: at least one, and as many more as their share of the time allows."""
    seconds, validation = minutes * 60, max(pairs * speed.validation, 1e-9)
    validations = max(1, min(VALIDATIONS, int(seconds * VALIDATING / validation)))
    left = seconds - max(validations * validation, seconds * VALIDATING)
    return max(1, int(left / speed.seconds)), validations


def _say(label: str, text: str) -> None:
    log.info(f"{label:<8}{text}")


def _duration(seconds: float) -> str:
    return f"about {max(seconds / 60, 1):.0f} min" if seconds < 7200 else f"about {seconds / 3600:.1f} hours"


def _hold_out(parts: CorpusParts, found: Survey, folder: Path, seed: int) -> tuple[Held, dict[str, CorpusConfig]]:
    """Writes the training pairs and those held out of them to a new folder; returns their numbers, and the parts."""
    usual = max(1, min(MOST_HELD_OUT, found.pairs // 20))
    counts = {part: usual if count is None else count for part, count in parts.held_out.items()}
    if sum(counts.values()) + (not found.others) > len(found.candidates):
        raise InputError(
            f"{parts.train.name}: too few different pairs ({len(found.candidates)}) to hold out "
            f"{', '.join(f'{count} as {part}' for part, count in counts.items())}, and train on others; ask for "
            "fewer with --valid-pairs and --test-pairs, or give files of their own, --valid-source and so on"
        )
    candidates = iter(found.candidates)
    hashes = {part: frozenset(islice(candidates, count)) for part, count in counts.items()}
    files = {part: _files(parts.train, folder, part) for part in ("train", *counts)}
    with new_folder(folder) as unfinished:
        inside = {part: tuple(unfinished / path.name for path in paths) for part, paths in files.items()}
        held = write_parts(parts.train, inside, hashes, seed=seed)
    corpora = {
        part: CorpusConfig(pairs=paths[0]) if len(paths) == 1 else CorpusConfig(source=paths[0], target=paths[1])
        for part, paths in files.items()
    }
    return held, corpora


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yields a new folder for the parts, to fill. It may only replace a folder that a killed ``nmt init`` has left."""
    with locked(folder):
        if folder.exists() and not (folder / UNFINISHED).exists():
            raise InputError(f"{folder}: is there already; give another NAME, or delete it")
        with replace_folder(folder) as unfinished:
            (unfinished / UNFINISHED).touch()
            yield unfinished


def places(name: str) -> tuple[Path, Path, Path]:
    """Names the configuration, the run and the folder of the parts. Raises InputError if the first two exist, or the
    name is invalid."""
    path = Path(name if name.endswith((".yaml", ".yml")) else f"{name}.yaml").expanduser()
    stem = path.stem
    # a configuration would read ${x} as a variable, and file systems allow names of 255 bytes
    is_no_name = stem[:1] in (" ", ".") or not stem.isprintable() or "${" in stem
    if is_no_name or max(len(os.fsencode(part)) for part in path.parts) > MOST_BYTES:
        raise InputError(f"NAME {name!r}: is not a name for a configuration; give one such as de-en")
    if path.exists():
        raise InputError(f"{path}: is there already; give another NAME, or delete it")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written: folder {path.parent} does not exist")
    run = Path("runs") / stem
    if run.exists():
        raise InputError(f"{run}: is there already, and would be the run of {path}; give another NAME, or delete it")
    return path, run, Path("data") / stem


def _files(corpus: CorpusConfig, folder: Path, part: str) -> tuple[Path, ...]:
    """Names the files of a part, with the endings of the corpus's own files."""
    if corpus.pairs is not None:
        return (folder / f"{part}.tsv",)
    kept = ([suffix for suffix in file.suffixes if suffix not in (".gz", ".xz", ".txt")] for file in corpus.files)
    ends = ["".join(suffixes[-1:]) for suffixes in kept]
    if "" in ends or ".links" in ends or ends[0] == ends[1]:
        ends = [".source", ".target"]
    return tuple(folder / f"{part}{end}" for end in ends)


# -------------------------------------------------------------------------------------- the model and the configuration

SMALL, MIDDLE, BASE = 80_000, 800_000, 1_600_000
"""Numbers of target subwords from which on larger models are chosen: 5,000, 50,000 and 100,000 pairs with the length of
those of Multi30k."""


@dataclass(frozen=True)
class Size:
    """A model and how it is trained."""

    name: str
    reason: str
    """Comment lines with the reasons for this model."""
    model: str
    """Lines of the model section, without dropout if ``dropout`` is set."""
    subwords: int
    batch_tokens: int
    learning_rate: float
    epochs: float
    optimizer: str = "muon"
    """Muon often learns in fewer updates (docs/measurements/speed.md)."""
    dropout: float | None = None
    """The rate for a training of more than ``SOME_EPOCHS``."""
    few_epochs: float = 3
    """Maximum number of epochs in which dropout slows learning down more than it helps (docs/measurements/speed.md)."""
    first_validation: int = 50
    """Number of updates before the first validation, about a minute, to see a translation soon."""
    start_from: str | None = None
    """The run to fine-tune."""
    joint: bool = True
    """One vocabulary for both languages."""
    search: str = ""
    """Search section of the run to fine-tune."""
    is_guided: bool = False
    """If True, attention also learns from the links of the text aligner."""
    smaller: Size | None = None
    """The next smaller size, for a training of few minutes."""


SOME_EPOCHS, SOME_DROPOUT = 15, 0.1
"""Maximum number of epochs in which dropout above the second number slows learning down more than it helps."""


def _transformer(layers: int, size: int, *, heads: int, feed_forward: int) -> str:
    stack = f"{{kind: transformer, layers: {layers}, size: {size}, heads: {heads}, feed_forward: {feed_forward}}}"
    return f"""\
  embedding: {{size: {size}, tie: all}}          # one table for source, target and output layer: fewer parameters
  encoder: {stack}
  decoder: {stack}
"""


TINY = Size(
    name="tiny, Transformer",
    reason="""\
# Of the models that were compared on 3,000 pairs, two layers were better than four and than a recurrent model, and
# many epochs better than few (docs/measurements/few-pairs.md).
""",
    model=_transformer(2, 128, heads=4, feed_forward=256),
    dropout=0.3,
    few_epochs=5,
    subwords=4000,
    batch_tokens=1024,
    learning_rate=4e-3,
    epochs=16,
    is_guided=True,
)

SMALL_TRANSFORMER = replace(
    TINY,
    name="small, Transformer",
    reason="""\
# A small Transformer (Wu et al. 2021): of the models that were compared on 29,000 pairs it was the best, and took less
# time to train than the recurrent one (README.md).
""",
    model=_transformer(4, 128, heads=4, feed_forward=256),
    dropout=0.1,
    few_epochs=3,
    subwords=8000,
    batch_tokens=2048,
    learning_rate=6e-3,
    first_validation=100,
    smaller=TINY,
)
SMALL_DROPOUT = replace(SMALL_TRANSFORMER, dropout=0.2, batch_tokens=4096, learning_rate=4e-3, first_validation=50)

MEDIUM_CPU = Size(
    name="medium, Transformer",
    reason="""\
# A Transformer of a width that a CPU can still train; with a GPU and without --minutes, `nmt init` takes the base
# model of Vaswani et al. 2017.
""",
    model=_transformer(4, 256, heads=4, feed_forward=1024),
    dropout=0.1,
    subwords=16_000,
    batch_tokens=4096,
    learning_rate=2e-3,
    epochs=12,
    first_validation=30,
    # aligning many pairs takes long
    smaller=replace(SMALL_TRANSFORMER, is_guided=False, smaller=replace(TINY, is_guided=False)),
)

BASE_CUDA = Size(
    name="base, Transformer",
    reason="""\
# The base model of Vaswani et al. 2017, table 3, for the GPU that is here. Where memory is short, less batch_tokens.
""",
    model=_transformer(6, 512, heads=8, feed_forward=2048),
    dropout=0.1,
    subwords=32_000,
    batch_tokens=16_384,
    learning_rate=1e-3,
    epochs=15,
    optimizer="adamw",  # as Vaswani et al. trained it; Muon has not been measured at this size
    smaller=MEDIUM_CPU,
)


def size_of_run(model: str) -> Size:
    """Returns the model of a run, and settings to fine-tune it. Raises InputError if there is no such run."""
    run = run_of(find_checkpoint(model))
    experiment = experiments.load(run / experiments.FILE)
    if experiment.data.target_languages or experiment.data.context:
        raise InputError(f"--from {model}: reads languages or previous sentences; copy its configuration, change data")
    training = experiment.training
    return Size(
        name=f"that of {run}",
        reason=f"# That of {run}; only dropout may be another.\n",
        model=indent(write(experiment.model.model_dump(mode="json")), "  "),
        subwords=experiment.data.subwords.size,
        batch_tokens=training.batching.batch_tokens,
        learning_rate=training.optimizer.learning_rate / 4,
        epochs=5,
        optimizer=training.optimizer.kind,
        first_validation=0,
        start_from=str(run),
        joint=experiment.data.subwords.joint,
        search=write({"search": experiment.search.model_dump(mode="json")}),
    )


def target_tokens(found: Survey, pairs: int) -> int:
    """Estimates the target subwords, end tokens included, of some pairs of a corpus: one has about four letters."""
    return round((found.target_letters / 4 + found.pairs) * pairs / max(found.pairs, 1))


def size_for(tokens: int, *, cuda: bool) -> Size:
    """Chooses the model for a number of target subwords to train on."""
    for more, size in ((SMALL, TINY), (MIDDLE, SMALL_DROPOUT), (BASE, SMALL_TRANSFORMER)):
        if tokens < more:
            return size
    return BASE_CUDA if cuda else MEDIUM_CPU


def is_guided(size: Size, found: Survey) -> bool:
    """Returns True if attention should learn from word links: for few pairs, but enough to find links, whose words are
    separated by spaces on both sides."""
    is_few = size.is_guided and found.pairs >= LEAST_LINKED
    return is_few and not any(map(lacks_spaces, zip(*found.sample, strict=True)))


def subwords_for(size: Size, found: Survey) -> int:
    """Chooses the number of entries of the vocabulary: not more than the text has words, with room for all its
    characters."""
    least = found.characters + 8
    return max(least, min(max(size.subwords, 2 * least), least + found.words * 4 // 5))


def updates_for(size: Size, tokens: int) -> int:
    """Chooses the number of updates for the epochs of a size over ``tokens`` target subwords: fewer epochs the larger
    the corpus is, and more if it is small (docs/measurements/few-pairs.md)."""
    corpus = tokens / BASE
    epochs = max(3.0, size.epochs * (math.pow(corpus, -0.4) if corpus > 1 else max(1.0, math.pow(4 * corpus, -0.6))))
    return max(200, round(epochs * tokens / size.batch_tokens / 100) * 100)


def _changes(found: Survey) -> str | None:
    """Describes what the default normalization would change in many targets; None if it does not."""
    from nmt.data.train_tokenizers import NOTABLE_CHANGES, changed_by_normalization

    share, change = changed_by_normalization([target for _, target in found.sample], "nmt_nfkc")
    return f"{share:.1%} of the targets ({change})" if share >= NOTABLE_CHANGES else None


def _dropout(size: Size, epochs: float) -> str:
    """Writes the line of dropout, if the model has none of its own."""
    if size.dropout is None:
        return ""
    some = min(size.dropout, SOME_DROPOUT) if epochs > size.few_epochs else 0
    rate = size.dropout if epochs > SOME_EPOCHS else some
    why = f"  # {rate}, as pairs are read {epochs:.1f} times" if rate < size.dropout else ""
    return f"  dropout: {{embedding: {rate}, layers: {rate}}}{why}\n"


def config_text(
    *, path: Path, run: Path, size: Size, updates: int, found: Survey, train_pairs: int,
    corpora: Mapping[str, CorpusConfig], links: Path, cuda: bool, seed: int, changes: str | None,
    validations: int = VALIDATIONS,
) -> str:  # fmt: skip
    """Writes the configuration, with comments. ``corpora`` are train, and possibly valid and test; ``links`` are the
    links of train; ``changes`` are those that the default normalization would make to many targets."""
    guidance = ""
    if is_guided(size, found):
        corpora = {**corpora, "train": TrainingCorpusConfig(**corpora["train"].model_dump(), links=links)}
        guidance = (
            "  # Attention also learns from the word links of nmt align --learn. Few pairs gain much from it.\n"
            "  guided_attention: {weight: 0.3}\n"
        )
    parts = [part for part in ("train", "valid", "test") if part in corpora]
    trees = {part: corpora[part].model_dump(mode="json", exclude_defaults=True) for part in parts}
    sections = indent(write(trees), "  ")
    validation = "  # no data.valid: nothing is measured, and the last checkpoint is the one that translates\n"
    if "valid" in corpora:
        every = max(50 if validations == VALIDATIONS else 1, updates // validations)
        first = min(every, size.first_validation)
        early = "early, to see that it learns" if first else "before the first update"
        validation = (
            f"  # chrF decides which checkpoint is best; the first validation is {early}\n"
            f"  validation: {{every: {every}, first: {first}, metric: chrf}}\n"
        )
    kept, why = "", ""
    if changes is not None:
        kept = ", normalization: nfc"
        why = f"  # nfc, because the default would change {changes}, and the model would write them so.\n"
    subwords = f"""\
  # One vocabulary for both languages. Fewer subwords if pairs are few: each must be seen often enough to be learnt.
  # Every digit is a subword of its own, so that numbers are copied digit by digit.
{why}  subwords: {{kind: bpe, size: {subwords_for(size, found)}, joint: true, split_digits: true{kept}}}
"""
    filters = ""
    if found.identical > MANY_IDENTICAL * found.pairs:
        filters = f"""\
  # {found.identical / found.pairs:.1%} of the pairs have the same text on both sides, and a model of corrections or
  # paraphrases should learn from these. If they were only left untranslated, remove the next line to drop them.
  filters: {{identical: false}}
"""
    start = ""
    if size.start_from is not None:
        tree = {"subwords": {"model": size.start_from, "joint": size.joint}}
        subwords = f"  # The vocabulary of the old run.\n{indent(write(tree), '  ')}"
        start = (
            "  # Its weights at a quarter of their old rate. To see what is forgotten, name old pairs above,\n"
            "  # data.old_domain: {source: FILE, target: FILE}\n"
            f"{indent(write({'start_from': size.start_from}), '  ')}"
        )
    epochs = updates * size.batch_tokens / max(1, target_tokens(found, train_pairs))
    return f"""\
# {path.name}: {train_pairs:,} sentence pairs to train on, {"on CUDA" if cuda else "on a CPU"}. Written by nmt init.
# Every key has a default and an explanation: nmt config --explain training.optimizer.learning_rate
# To train:  nmt train {shlex.quote(str(path))}     The same command goes on after whatever stopped it.
{write({"run": str(run)})}seed: {seed}
data:
{sections}{subwords}{filters}\
model:
{indent(size.reason, "  ")}{size.model}{_dropout(size, epochs)}\
training:
{start}{guidance}\
  batching: {{batch_tokens: {size.batch_tokens}}}          # target subwords of an update
  optimizer: {{kind: {size.optimizer}, learning_rate: {size.learning_rate:g}}}   # lower it if the loss does not fall
  # The rate rises over warmup updates, stays for half of the training, then falls. More stopping.updates for more
  # quality, fewer for a first try; nmt train --extend goes on with another number once training has begun.
  schedule: {{kind: linear, warmup: {min(4000, max(updates // 10, min(50, updates // 3 + 1)))}, hold: 0.5, final: 0.02}}
  label_smoothing: 0.1
  stopping: {{updates: {updates}}}
{validation}{size.search}"""
