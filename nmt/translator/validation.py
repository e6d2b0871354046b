"""Measures a model on the valid corpus while it is trained, and shows each validation as a row of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nmt.core.device import Compute
from nmt.core.files import naming, whole_file
from nmt.data.context import DocumentContext, rows_of_sentences
from nmt.data.segments import SourceLengths
from nmt.data.store import Store
from nmt.data.tokenizer import TokenizerPair
from nmt.experiment import Experiment
from nmt.models.seq2seq import Seq2Seq
from nmt.training.validation import Validated

if TYPE_CHECKING:
    from nmt.translator.loading import TrainedModel

BOLD, FAINT, GREEN, YELLOW = 1, 2, 32, 33
"""Codes of a terminal (SGR)."""


class Example(NamedTuple):
    """A sentence of the valid corpus with its current translation."""

    source: str
    reference: str
    translation: str


class Table:
    """Formats the rows of a table, the first one below the names of the columns, for a person who watches a training.
    Each row is followed by the example, if there is one."""

    def __init__(self, *, width: int, colour: bool) -> None:
        self.example: Example | None = None
        self._width, self._colour = width, colour
        self._has_head = False

    def __call__(self, validated: Validated) -> str:
        """Returns a row, with the head before it and the example after it, if they are due."""
        row = f"{validated.update:>8,} {validated.epoch:>6} {validated.minutes:>7.1f}"
        row += "".join(f" {figure:>{max(11, len(name))}.2f}" for name, figure in validated.figures.items())
        if validated.is_best:
            row = f"{self._painted(row, BOLD)}  {self._painted('best', GREEN)}"
        lines = [row]
        if not self._has_head:
            names = "".join(f" {name:>11}" for name in validated.figures)
            lines.insert(0, f"{'update':>8} {'epoch':>6} {'min':>7}{names}")
            self._has_head = True
        if self.example is not None:
            from nmt.core.terminal_width import cut  # loads Rich

            source, reference, translation = (cut(text, max(20, self._width - 16)) for text in self.example)
            # words of the translation that are in the reference, too, are green
            gold = set(self.example.reference.split())
            words = [self._painted(word, GREEN if word in gold else YELLOW) for word in translation.split()]
            lines.append(self._painted(f"  source       {source}", FAINT))
            lines.append(self._painted(f"  reference    {reference}", FAINT))
            lines.append(f"  translation  {' '.join(words)}")
        return "\n".join(lines)

    def _painted(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text


@dataclass(frozen=True)
class Validation:
    """Measures loss, perplexity and accuracy, and if configured BLEU and chrF, like ``nmt evaluate``. With several
    directions between languages, BLEU and chrF are the means over directions; the figures of each direction are
    included as well.

    The code that translates and aligns is loaded by the first validation, not at the start of training.
    """

    experiment: Experiment
    valid: Store
    tokenizers: TokenizerPair
    lengths: SourceLengths
    compute: Compute
    table: Table | None
    """Shows the sentence of middle length, as the model translates it."""

    def __call__(self, model: Seq2Seq[Any, Any], snapshot: Path | None) -> Mapping[str, float]:
        """Measures the figures, by name. The attention between the first valid pairs is written to ``snapshot``, if the
        configuration requests it and ``snapshot`` is not None."""
        from nmt.translator.loading import TrainedModel, for_inference
        from nmt.translator.scorer import Scorer

        experiment = self.experiment
        if snapshot is not None and experiment.training.snapshots:
            snapshot.parent.mkdir(exist_ok=True)  # now, before another run may take its place
        model = for_inference(model, self.compute)
        trained = TrainedModel(
            experiment.folder, experiment, self.tokenizers, lambda: (model, self.compute), self.lengths
        )
        sources = self.valid.source_texts()
        references = [self.valid.text(index).target for index in range(len(self.valid))]
        rows = rows_of_sentences(sources, references) if self.valid.has_context else range(len(sources))
        source_ids = [[*self.valid.prefix(row), *self.tokenizers.source.encode(sources[row])] for row in rows]
        target_ids = [self.tokenizers.target.encode(references[row]) for row in rows]
        origins = [self.valid.line(row) for row in rows]
        names = [f"line {origin.number} of {origin.corpus}" for origin in origins]
        prediction = Scorer(trained).predict_ids(source_ids, target_ids, names)
        figures = {"loss": prediction.loss, "perplexity": prediction.perplexity, "accuracy": prediction.accuracy}
        if experiment.training.validation.bleu:
            figures |= self._scores(trained, sources, references)
        if snapshot is not None and experiment.training.snapshots:
            self._write_snapshot(trained, snapshot, sources, references)
        return figures

    def _scores(self, trained: TrainedModel, sources: Sequence[str], references: Sequence[str]) -> dict[str, float]:
        """Computes BLEU and chrF of the model's translations, and gives the table an example."""
        from nmt.data.corpus import read_blocks
        from nmt.evaluation.translation import scores
        from nmt.search.engine import TorchEngine
        from nmt.translator.translator import Translator

        names, beam = ("bleu", "chrf"), self.experiment.training.validation.beam
        search = self.experiment.search.for_validation(beam)
        translator = Translator(trained, search, TorchEngine(trained.model, self.compute))

        def translate(language: str | None, sources: Sequence[str]) -> list[str]:
            return [each.text for each in translator.to(target_language=language).translate(sources)]

        def measure(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
            measured = scores(hypotheses, references, metrics=names)
            return {name: score.value for name, score in zip(names, measured, strict=True)}

        hypotheses = [""] * len(sources)
        by_direction: dict[str, dict[str, float]] = {}
        for (direction, language), rows in self._rows_of_directions(range(len(sources))).items():
            for row, text in zip(rows, translate(language, [sources[row] for row in rows]), strict=True):
                hypotheses[row] = text
            by_direction[direction] = measure(*([texts[row] for row in rows] for texts in (hypotheses, references)))
        if self.table is not None:
            middle = sorted(range(len(sources)), key=lambda index: len(sources[index]))[len(sources) // 2]
            self.table.example = Example(sources[middle], references[middle], hypotheses[middle])
        figures = {name: mean(each[name] for each in by_direction.values()) for name in names}
        if len(by_direction) > 1:
            for direction, each in by_direction.items():
                figures |= {f"{name} {direction}": value for name, value in each.items()}
        if (old := self.experiment.data.old_domain) is not None:
            blocks = list(read_blocks(old))
            lines = DocumentContext().sentences(line for block in blocks for line in block.sources)
            of_old = measure(translate(old.target_language, lines), [row for block in blocks for row in block.targets])
            figures |= {f"{name} old domain": value for name, value in of_old.items()}
        return figures

    def _rows_of_directions(self, rows: Iterable[int]) -> dict[tuple[str, str | None], list[int]]:
        """Groups some pairs by the direction of their corpus, such as "de-en", and its target language."""
        corpora = self.experiment.data.valid_corpora
        found: dict[tuple[str, str | None], list[int]] = {}
        for row in rows:
            corpus = corpora[int(self.valid.corpus[row])]
            found.setdefault(("-".join(corpus.languages or ()), corpus.target_language), []).append(row)
        return found

    def _write_snapshot(
        self, trained: TrainedModel, path: Path, sources: Sequence[str], references: Sequence[str]
    ) -> None:
        """Writes the attention between the first valid pairs that are not too long to align, as ``nmt align --level
        subword --format jsonl`` does."""
        from nmt.alignment.formats import Alignment, jsonl_line
        from nmt.alignment.request import AlignmentRequest
        from nmt.translator.aligner import Aligner

        experiment = self.experiment
        longest = np.maximum(self.valid.source_lengths, self.valid.target_lengths)
        rows = np.flatnonzero(longest <= experiment.search.max_source_tokens)[: experiment.training.snapshots]
        attention, alignments = AlignmentRequest("attention"), dict[int, Alignment]()
        for (_, language), own in self._rows_of_directions(rows.tolist()).items():
            pairs = [sources[row] for row in own], [references[row] for row in own]
            aligned = Aligner(trained.to(language), experiment.alignment).align([attention], *pairs, level="subword")
            alignments |= zip(own, aligned[attention], strict=True)
        with whole_file(path) as partial, naming(path), partial.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{jsonl_line(alignments[row])}\n" for row in sorted(alignments))
