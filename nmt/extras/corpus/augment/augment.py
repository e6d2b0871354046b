"""Additional training pairs for a configuration, in a folder with which the same call continues after an interruption.

    back-translation    lines of the target language, translated back: Sennrich et al. 2016, "Improving Neural Machine
                        Translation Models with Monolingual Data"; searched, drawn or noised: Edunov et al. 2018,
                        "Understanding Back-Translation at Scale"; tagged: Caswell et al. 2019, "Tagged
                        Back-Translation"
    self-training       lines of the source language, translated, then noised: He et al. 2020, "Revisiting Self-Training
                        for Neural Sequence Generation"
    copies              lines of the target language as their own source: Currey et al. 2017, "Copied Monolingual Data
                        Improves Low-Resource Neural Machine Translation"
    diversified-target  the sources of the training pairs with translations of them, and
    diversified-source  translations of their targets with these: Nguyen et al. 2020, "Data Diversification"
    dictionary          entries of a bilingual dictionary, and
    exchanged-words     training pairs with one of their words: see ``word_exchange``

Differences from the papers: the last two have one model of each direction and one round.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import nmt
from nmt import experiment as experiments
from nmt.cli.options import loader
from nmt.config.yaml_source import Override
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import make_folder
from nmt.data.atomic_folder import locked
from nmt.data.config import CorpusConfig
from nmt.data.context import DocumentContext
from nmt.data.corpus import numbered_pairs, read_blocks, read_lines
from nmt.evaluation.translation import scores
from nmt.experiment import Experiment
from nmt.extras.corpus.augment.configurations import Synthetic, augmented, exchanged, mixture, write
from nmt.extras.corpus.augment.dictionary import count_words, read_entries
from nmt.extras.corpus.augment.pairs import Kind, with_round_trip, write_pairs, write_parallel
from nmt.extras.corpus.augment.steps import hash_of, run_step
from nmt.extras.corpus.augment.text import cleaned, read_copies, read_translations, write_lines, write_shards
from nmt.extras.corpus.augment.word_exchange import ENTRIES, exchanged_words, most_useful
from nmt.training.run_directory import MODEL
from nmt.translator.find_run import find_checkpoint, run_of
from nmt.translator.windows import OutputOptions
from nmt.workflows import train, translate
from nmt.workflows.align import check_readable

if TYPE_CHECKING:
    from nmt.extras.corpus.augment.command import AugmentOptions


def kinds_of(options: AugmentOptions) -> list[Kind]:
    """The corpora to make."""
    kinds = []
    if options.target_text and options.back_translation != "none":
        kinds.append(Kind("back-translation", "target", options.back_translation))
    if options.source_text:
        kinds.append(Kind("self-training", "source", "noised"))
    if options.copies:
        kinds.append(Kind("copies", "target", copies=True))
    if options.diversify:
        kinds.append(Kind("diversified-target", "source", of_pairs=True))
        kinds.append(Kind("diversified-source", "target", of_pairs=True))
    return kinds


@dataclass(frozen=True)
class Augmentation:
    """The steps for one configuration in one folder."""

    config: Path
    experiment: Experiment
    folder: Path
    options: AugmentOptions

    # ------------------------------------------------------------------------------------------------------- models

    def train(self, experiment: Experiment, name: str) -> Path:
        """Trains a model, or resumes its training, unless it is finished; returns the run."""
        run = experiment.folder
        corpora = [*experiment.data.train_corpora, *experiment.data.valid_corpora]
        tree = experiment.model_dump(mode="json", include={"seed", "data", "model", "training"})
        inputs = {**tree, "text to train on": hash_of(path for corpus in corpora for path in corpus.files)}

        def make() -> None:
            log.info(f"{name}: training {run}")
            nmt.accelerate()
            device, precision = self.options.device, self.options.precision
            train.train(experiment, device=device, precision=precision, threads=nmt.on_idle_cores)

        run_step(self.folder, f"training of {run}", inputs, (run / experiments.FILE, run / "latest"), make)
        return run

    @cached_property
    def forward(self) -> Path:
        """Returns the checkpoint of the configuration's own run, which is trained first if necessary."""
        return find_checkpoint(self.train(self.experiment, "forward model"))

    @cached_property
    def reverse(self) -> Path:
        """Returns the checkpoint of the model of the other direction, which is trained first if necessary."""
        given = self.options.reverse
        path = self.folder / "reverse.yaml" if given is None else Path(given).expanduser()
        if given is None:
            comments = [f"{self.config} with source and target exchanged; nmt augment writes it anew"]
            write(exchanged(self.experiment, self.folder / "reverse", self._exchanged), path, comments, {})
        elif not path.is_file():
            return find_checkpoint(path)
        return find_checkpoint(self.train(experiments.load(path, with_corpora=True), "reverse model"))

    def _exchanged(self, pairs: Path) -> Path:
        """Writes a file of pairs with its sides exchanged, named by its content."""
        made = self.folder / "exchanged" / f"{hash_of([pairs])[-16:]}.tsv"
        if not made.exists():
            made.parent.mkdir(exist_ok=True)
            blocks = read_blocks(CorpusConfig.model_construct(pairs=pairs))
            rows = (row for block in blocks for row in zip(block.targets, block.sources, strict=True))
            write_lines(("\t".join(row) for row in rows), made)
        return made

    # --------------------------------------------------------------------------------------------------------- text

    def _text(self, kind: Kind) -> Path:
        """Returns the folder of the lines that pairs are made from."""
        folder, data = self.folder / "text" / kind.text.replace(" ", "-"), self.experiment.data
        held_out = [*data.valid_corpora, *data.test_corpora]
        if kind.of_pairs:
            name, files = "data.train", [path for corpus in data.train_corpora for path in corpus.files]
            lines = _sides(data.train_corpora, kind.side)
        else:
            name, files = f"--{kind.side}-text", [*(getattr(self.options, f"{kind.side}_text") or ())]
            lines = chain.from_iterable(read_lines(path, longest=None) for path in files)
        inputs = {
            name: hash_of(files),
            "data.filters.max_length": data.filters.max_length,
            "data.valid or data.test": hash_of(path for corpus in held_out for path in corpus.files),
        }

        def make() -> None:
            counts: Counter[str] = Counter(kept=0)
            held_out_lines = frozenset(map(str.strip, _sides(held_out, kind.side)))
            kept_lines = cleaned(lines, counts, max_length=data.filters.max_length, held_out=held_out_lines)
            write_shards(kept_lines, folder)
            kept, out = counts.pop("kept"), ", ".join(f"{counts[why]:,} {why}" for why in sorted(counts))
            log.info(f"{kind.text:<20}{kept:,} lines" + (f"; left out: {out}" if out else ""))
            if not kept:
                raise InputError(f"{name} {files[0]}: no line is left; give other text")

        run_step(self.folder, kind.text, inputs, (folder,), make)
        return folder

    def _translated(self, name: str, text: Path, side: str, changes: Sequence[str], judges: bool = False) -> Path:
        """Returns the folder of the translations of a folder of text of one side, with ``judges`` with confidence."""
        folder, options = self.folder / "translated" / name, self.options
        model, to = (self.forward, 1) if side == "source" else (self.reverse, 0)
        languages = self.experiment.data.train_corpora[0].languages
        if languages and len(experiments.load(run_of(model) / experiments.FILE).data.target_languages) > 1:
            changes = [*changes, Override.text("search.to", "--to", languages[to])]
        inputs = {
            "text": hash_of([text]),
            "model": hash_of([model / MODEL]),
            "search": " ".join(changes),
            "--precision": options.precision,
            "--min-confidence": "given" if judges else None,
        }

        def make() -> None:
            folder.mkdir(parents=True, exist_ok=True)
            for unfinished in folder.glob(".*.partial-*"):
                unfinished.unlink()
            log.info(f"{name}: translating with {model}")
            self._translate(text, folder, model, changes, judges)

        run_step(self.folder, f"translations of {name}", inputs, (folder,), make, resumes=True)
        return folder

    def _translate(self, text: Path, folder: Path, model: Path, changes: Sequence[str], judges: bool) -> None:
        """Translates each file of a folder to one of the same name in another, unless it is there."""
        device, precision, wanted = self.options.device, self.options.precision, OutputOptions("jsonl")
        if self.options.ray is not None:
            from nmt.extras.cluster.translate_shards import ShardJob, translate_shards

            job = ShardJob(folder, tuple(changes), wanted, device=device, precision=precision)
            translate_shards(job, [str(model)], text, self.options.ray)
            return
        load = partial(loader(str(model), changes, device=device, precision=precision), confidence=judges)
        for shard in sorted(text.iterdir()):
            if not (folder / shard.name).exists():
                translate.translate(str(model), load, input=shard, output=folder / shard.name, options=wanted)

    # -------------------------------------------------------------------------------------------------------- pairs

    def pairs(self, kind: Kind) -> Synthetic:
        """Makes a corpus of a kind."""
        text, options, seed = self._text(kind), self.options, self.experiment.seed
        keep, order = 1.0 if kind.copies else options.keep, options.keep_by or "score"
        again: Path | None = None
        inputs: dict[str, object] = {"method": kind.method, "--keep": keep, "seed": seed}
        inputs["--min-confidence"] = least = options.min_confidence
        if kind.copies:
            rows = partial(read_copies, text)
            inputs["text"] = hash_of([text])
        else:
            search = _search(options.beam, seed if kind.method == "sampling" else None)
            folder = self._translated(kind.name, text, kind.side, search, judges=least is not None)
            rows = partial(read_translations, folder)
            inputs["translations"] = hash_of([folder])
            if keep < 1:
                inputs["--keep-by"] = order
            if order == "round-trip":
                again = self._round_trip(kind, folder)
        files, end = self._files(kind.name)
        inputs["data.context"] = True if self.experiment.data.context else None

        def make() -> None:
            scored = rows if again is None else lambda: with_round_trip(rows(), read_translations(again))
            counts = write_pairs(kind, rows, scored, files, keep=keep, min_confidence=least or 0.0, seed=seed, end=end)
            if not counts.written:
                raise InputError(f"{kind.name}: no pair is left: all are blank or doubtful; train the model longer")
            blank = f", {counts.blank:,} without a translation left out" if counts.blank else ""
            doubtful = f", {counts.doubtful:,} with less than --min-confidence left out" if counts.doubtful else ""
            worst = f", {counts.worst:,} of the worst {order} left out" if counts.worst else ""
            log.info(f"{kind.name:<20}{counts.written:,} pairs{blank}{doubtful}{worst}")

        run_step(self.folder, f"pairs of {kind.name}", inputs, files, make)
        return _counted(kind.name, files)

    def _files(self, name: str) -> tuple[tuple[Path, Path], str]:
        """Returns the files of a corpus, and the end of its lines: each was made separately, so with context a blank
        line separates it from the preceding one."""
        source, target = self.experiment.data.language_names or ("source", "target")
        end = "\n\n" if self.experiment.data.context else "\n"
        return (self.folder / "pairs" / f"{name}.{source}", self.folder / "pairs" / f"{name}.{target}"), end

    def dictionary(self, path: Path) -> list[Synthetic]:
        """Makes the corpora of a dictionary: its entries, and training pairs with exchanged words."""
        data, seed = self.experiment.data, self.experiment.seed
        held_out = [*data.valid_corpora, *data.test_corpora]
        names = ("dictionary", "exchanged-words")
        files, (end, _) = zip(*map(self._files, names), strict=True)
        inputs = {
            "--dictionary": hash_of([path]),
            "data.train": hash_of(file for corpus in data.train_corpora for file in corpus.files),
            "data.valid or data.test": hash_of(file for corpus in held_out for file in corpus.files),
            "data.context": True if data.context else None,
            "seed": seed,
        }

        def make() -> None:
            counts = [count_words(_sides(data.train_corpora, side)) for side in ("source", "target")]
            entries = most_useful(read_entries(path, counts), counts)
            number = sum(1 for _ in _sides(data.train_corpora, "source"))
            pairs = (pair for corpus in data.train_corpora for _, *pair in numbered_pairs(corpus))
            held_out_lines = {line for side in ("source", "target") for line in _sides(held_out, side)}
            most = [entry[:2] for entry in entries[: round(ENTRIES * number)]]
            made = most, exchanged_words(pairs, entries, counts[0], seed)
            for name, corpus, paths in zip(names, made, files, strict=True):
                written = write_parallel((pair for pair in corpus if held_out_lines.isdisjoint(pair)), paths, end)
                log.info(f"{name:<20}{written:,} pairs")

        run_step(self.folder, "pairs of a dictionary", inputs, [*chain(*files)], make)
        corpora = [_counted(name, paths) for name, paths in zip(names, files, strict=True)]
        return [corpus for corpus in corpora if corpus.pairs]

    def _round_trip(self, kind: Kind, translations: Path) -> Path:
        """Translates translations back; returns the folder."""
        name, text = f"{kind.name}.back", self.folder / "text" / f"{kind.name}.translations"
        inputs = {"translations": hash_of([translations])}
        lines = (row.text for row in read_translations(translations))
        run_step(self.folder, f"text of {name}", inputs, (text,), lambda: write_shards(lines, text))
        return self._translated(name, text, "target" if kind.side == "source" else "source", _search(self.options.beam))

    # ------------------------------------------------------------------------------------------------ configurations

    def write_config(self, corpora: Sequence[Synthetic], run: Path, path: Path) -> Path:
        """Writes the configuration of a run that also learns from these corpora."""
        mixed = mixture(self.experiment, corpora, self.options.real_share)
        changed = augmented(self.experiment, run, corpora, mixed)
        comments = [
            f"{self.config} with more pairs. nmt augment writes this file anew: change a copy of it.",
            f"An epoch sees each made pair once, and the real ones {mixed.real:.3g} times as often: --real-share.",
        ]
        if (updates := changed.training.stopping.updates) is not None:
            was = self.experiment.training.stopping.updates
            comments.append(f"{updates:,} updates in place of {was:,}: so each real pair is seen as often as before.")
        notes = {f"source: {corpus.source}": f"{corpus.name}, {corpus.pairs:,} pairs" for corpus in corpora}
        if not changed.data.filters.identical:
            notes["    identical: false"] = "keeps the copies"
        write(changed, path, comments, notes)
        return path

    def table(self, runs: Mapping[str, Path]) -> str:
        """Formats BLEU and chrF of runs on the validation corpus, with ``search`` of their configurations."""
        valid = self.experiment.data.valid_corpora
        sources = [text for corpus in valid for text in DocumentContext().sentences(_sides([corpus], "source"))]
        references = list(_sides(valid, "target"))
        rows = [f"{'valid':<30}  BLEU   chrF"]
        for name, run in runs.items():
            translator = nmt.load_translator(run, device=self.options.device, precision=self.options.precision)
            hypotheses = [each.text for each in translator.translate(sources)]
            bleu, chrf = scores(hypotheses, references, metrics=("bleu", "chrf"))
            rows.append(f"{name:<30} {bleu.value:5.1f}  {chrf.value:5.1f}")
        return "\n".join(rows)


def _counted(name: str, files: tuple[Path, Path]) -> Synthetic:
    return Synthetic(name, *files, sum(map(bool, read_lines(files[0], longest=None))))


def _sides(corpora: Iterable[CorpusConfig], side: str) -> Iterator[str]:
    """Yields the lines of one side of corpora."""
    for corpus in corpora:
        for block in read_blocks(corpus):
            yield from block.sources if side == "source" else block.targets


def _search(beam: int | None, sampling_seed: int | None = None) -> list[str]:
    """Returns the changes of a configuration for one translation of each line."""
    sampling = "null" if sampling_seed is None else f"{{seed: {sampling_seed}}}"
    changes = ["search.n_best=1", "search.consensus=null", "search.document=false", f"search.sampling={sampling}"]
    return [*changes, *([] if beam is None else [f"search.beam={beam}"])]


def augment(experiment: Experiment, options: AugmentOptions) -> None:
    """Makes the pairs, and writes a configuration that learns from them too. With ``train`` it trains both and prints
    their scores on the validation corpus; with ``compare`` also a model for each kind of pairs. Raises InputError."""
    config, trains = options.config, options.train or options.compare
    if len({corpus.languages for corpus in experiment.data.train_corpora}) > 1:
        raise InputError(f"{config}: data.train translates in several directions; give a configuration with one")
    if trains and not experiment.data.valid_corpora:
        raise InputError("--train: needs data.valid for its table of scores; set it, or leave --train out")
    dictionary = [] if options.dictionary is None else [options.dictionary]
    check_readable(*(options.target_text or ()), *(options.source_text or ()), *dictionary)
    if options.reverse is not None and not Path(options.reverse).expanduser().is_file():
        find_checkpoint(options.reverse)
    folder = Path(options.output or f"{experiment.run}-augmented").expanduser()
    make_folder(folder)
    if experiment.folder.exists() and folder.samefile(experiment.folder):
        raise InputError(f"--output {folder}: is the run of {config}; name another folder")
    with locked(folder.absolute()):
        work = Augmentation(config, experiment, folder, options)
        corpora = [corpus for path in dictionary for corpus in work.dictionary(path)]
        corpora += [work.pairs(kind) for kind in kinds_of(options)]
        path = work.write_config(corpora, folder, folder / "augmented.yaml")
        log.info(f"wrote {path}")
        if trains:
            _train(work, corpora, path, each=options.compare)
        else:
            log.info(f"next: nmt train {shlex.quote(str(path))}")


def _train(work: Augmentation, corpora: Sequence[Synthetic], path: Path, *, each: bool) -> None:
    """Trains the configuration, the one with all corpora, and with ``each`` also those with one of them; prints the
    scores."""
    runs = {str(work.config): run_of(work.forward)}
    if each and len(corpora) > 1:
        for corpus in corpora:
            run = work.folder / "compare" / corpus.name
            own = work.write_config([corpus], run, work.folder / f"{corpus.name}.yaml")
            runs[f"+ {corpus.name}"] = work.train(experiments.load(own), f"with {corpus.name}")
    name = f"+ {corpora[0].name}" if len(corpora) == 1 else f"+ all {len(corpora)}"
    runs[name] = work.train(experiments.load(path), "augmented model")
    print(work.table(runs), file=log.results())
