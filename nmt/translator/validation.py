"""Measures a model on the valid corpus while it is trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt.core.device import Compute
from nmt.core.files import naming, whole_file
from nmt.data.context import DocumentContext, rows_of_sentences
from nmt.data.segments import SourceLengths
from nmt.data.store import Store
from nmt.data.tokenizer import TokenizerPair
from nmt.experiment import Experiment
from nmt.models.seq2seq import Seq2Seq

if TYPE_CHECKING:
    from nmt.translator.loading import TrainedModel
    from nmt.translator.validation_table import Table


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
        from nmt.evaluation.perplexity import predict
        from nmt.models.feed import TeacherForcing
        from nmt.translator.loading import TrainedModel, for_inference

        if snapshot is not None and self.experiment.training.snapshots:
            snapshot.parent.mkdir(exist_ok=True)  # now, before another run may take its place
        used = for_inference(model, self.compute)
        run = self.experiment.folder
        trained = TrainedModel(run, self.experiment, self.tokenizers, used, self.compute, self.lengths)
        sources = self.valid.source_texts()
        references = [self.valid.text(index).target for index in range(len(self.valid))]
        rows = rows_of_sentences(sources, references) if self.valid.has_context else range(len(sources))
        prediction = predict(
            used,
            [[*self.valid.prefix(row), *self.tokenizers.source.encode(sources[row])] for row in rows],
            [self.tokenizers.target.encode(references[row]) for row in rows],
            TeacherForcing(),
            self.compute,
            batch_tokens=self.experiment.search.batch_tokens,
        )
        figures = {"loss": prediction.loss, "perplexity": prediction.perplexity, "accuracy": prediction.accuracy}
        if self.experiment.training.validation.bleu:
            figures |= self._translated(trained, sources, references)
        if snapshot is not None and self.experiment.training.snapshots:
            self._write_snapshot(trained, snapshot, sources)
        return figures

    def _translated(
        self, trained: TrainedModel, sources: Sequence[str], references: Sequence[str]
    ) -> Mapping[str, float]:
        """Computes BLEU and chrF of the model's translations, and gives the table an example."""
        from nmt.data.corpus import read_blocks
        from nmt.evaluation.translation import scores
        from nmt.search.config import SearchConfig
        from nmt.search.engine import TorchEngine
        from nmt.translator.translator import Translator

        config = self.experiment.training.validation
        one = {"beam": config.beam, "n_best": 1, "groups": 1, "sampling": None, "consensus": None}
        search = SearchConfig(**{**self.experiment.search.model_dump(), **one})
        translator = Translator(trained, search, TorchEngine(trained.model, self.compute))
        hypotheses = [""] * len(sources)
        by_direction: dict[str, dict[str, float]] = {}
        for languages, rows in self._rows_of_directions(range(len(sources))).items():
            own = translator.to(target_language=None if languages is None else languages[1])
            for row, translation in zip(rows, own.translate([sources[row] for row in rows]), strict=True):
                hypotheses[row] = translation.text
            pairs = [hypotheses[row] for row in rows], [references[row] for row in rows]
            bleu, chrf = scores(*pairs, metrics=("bleu", "chrf"))
            by_direction["-".join(languages or ())] = {"bleu": bleu.value, "chrf": chrf.value}
        if self.table is not None:
            from nmt.translator.validation_table import Example

            middle = sorted(range(len(sources)), key=lambda index: len(sources[index]))[len(sources) // 2]
            self.table.example = Example(sources[middle], references[middle], hypotheses[middle])
        figures = {name: mean(each[name] for each in by_direction.values()) for name in ("bleu", "chrf")}
        if len(by_direction) > 1:
            for direction, each in by_direction.items():
                figures |= {f"{name} {direction}": value for name, value in each.items()}
        if (old := self.experiment.data.old_domain) is not None:
            blocks = list(read_blocks(old))
            own = translator.to(target_language=old.target_language)
            sources = DocumentContext().sentences(line for block in blocks for line in block.sources)
            translations = [each.text for each in own.translate(sources)]
            targets = [line for block in blocks for line in block.targets]
            bleu, chrf = scores(translations, targets, metrics=("bleu", "chrf"))
            figures |= {"bleu old domain": bleu.value, "chrf old domain": chrf.value}
        return figures

    def _rows_of_directions(self, rows: Iterable[int]) -> dict[tuple[str, str] | None, list[int]]:
        """Groups some pairs by the languages of their corpus."""
        corpora = self.experiment.data.valid_corpora
        found: dict[tuple[str, str] | None, list[int]] = {}
        for row in rows:
            found.setdefault(corpora[int(self.valid.corpus[row])].languages, []).append(row)
        return found

    def _write_snapshot(self, trained: TrainedModel, path: Path, all_sources: Sequence[str]) -> None:
        """Writes the attention between the first valid pairs that are not too long to align, as ``nmt align --level
        subword --format jsonl`` does."""
        from nmt.alignment.formats import Alignment, jsonl_line
        from nmt.alignment.request import AlignmentRequest
        from nmt.translator.aligner import Aligner

        experiment, valid = self.experiment, self.valid
        longest = np.maximum(valid.source_lengths, valid.target_lengths)
        rows = np.flatnonzero(longest <= experiment.search.max_source_tokens)[: experiment.training.snapshots]
        attention, alignments = AlignmentRequest("attention"), dict[int, Alignment]()
        for languages, own in self._rows_of_directions(rows.tolist()).items():
            aligner = Aligner(trained.to(None if languages is None else languages[1]), experiment.alignment)
            sources, targets = [all_sources[row] for row in own], [valid.text(row).target for row in own]
            aligned = aligner.align([attention], sources, targets, level="subword")[attention]
            alignments |= zip(own, aligned, strict=True)
        with whole_file(path) as partial, naming(path), partial.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{jsonl_line(alignments[row])}\n" for row in sorted(alignments))
