"""A warning for text that is not in the model's source language.

The measure is the cost of a text, in bits per character, under the frequencies of single source subwords in the
training corpus, relative to that of the corpus itself; `scripts/source_language.py` prints it. For other text of the
language and domain it is 1.0, on Multi30k and the shipped corpus; for the target language 1.8 to 1.9 with joint
subwords and 3.3 with separate ones, for a third language 3 and more, and for the same language in another domain 1.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from nmt.core.errors import InputError
from nmt.data.store import Store
from nmt.data.tokenizer import Tokenizer
from nmt.translator.find_run import run_of
from nmt.translator.loading import TrainedModel

SENTENCES = 20_000
"""Training sentences that frequencies are counted in."""

LEAST, ENOUGH, MOST = 12, 60, 600
"""Subwords of a text that is judged at all, that is judged with confidence, and after which no more are read."""

SUSPICIOUS, CERTAIN = 1.5, 1.8
"""Relative costs that are warned about: of a text of ``ENOUGH`` subwords, and of a shorter one. Of single sentences
of the source language one in a hundred costs more than 1.6 to 1.8, of the target language more than half."""


class SourceLanguageCheck:
    """Judges the first texts that a model is given."""

    @classmethod
    def of(cls, trained: TrainedModel) -> SourceLanguageCheck:
        """The check for a model, by the prepared corpus of its run."""
        folder = trained.experiment.data.prepared or run_of(trained.checkpoint) / "prepared"
        return cls(trained.tokenizers.source, folder)

    def __init__(self, tokenizer: Tokenizer, prepared: Path) -> None:
        """Without the prepared corpus, as in a run that was copied by itself, nothing is judged."""
        self._tokenizer = tokenizer
        self._bits, self._usual = np.empty(0), 0.0
        self._cost, self._characters, self._subwords = 0.0, 0, 0
        self.is_over = True
        """True when no more texts need be judged."""
        try:
            store = Store.open(prepared / "train")
        except (InputError, OSError):
            return
        tokens = np.concatenate([store.source(row) for row in range(min(len(store), SENTENCES))])
        if not len(tokens) or tokens.max() >= self._tokenizer.size:  # prepared anew, with other subwords
            return
        counts = np.bincount(tokens, minlength=self._tokenizer.size) + 0.5
        self._bits = np.log2(counts.sum() / counts)
        self._usual = self._bits[tokens].sum() / _characters(self._tokenizer, tokens.tolist())
        self.is_over = False

    @property
    def relative_cost(self) -> float:
        """The cost of all texts so far, relative to that of the training corpus; 0 without any."""
        return self._cost / self._characters / self._usual if self._characters else 0.0

    def warning(self, texts: Iterable[str]) -> str | None:
        """A warning about all texts so far, once; None where there is nothing to say."""
        if self.is_over:
            return None
        for text in texts:
            if self._subwords < MOST:
                tokens = self._tokenizer.encode(text)
                self._subwords += len(tokens)
                self._cost += float(self._bits[tokens].sum())
                self._characters += _characters(self._tokenizer, tokens)
        if self._subwords < LEAST:
            return None
        relative = self.relative_cost
        if relative < (SUSPICIOUS if self._subwords >= ENOUGH else CERTAIN):
            self.is_over = self._subwords >= MOST
            return None
        self.is_over = True
        return (
            f"this text is unlike the source side of the training corpus (its subwords take {relative:.1f} times as "
            "many bits per character): is it in another language, or of another kind?"
        )


def _characters(tokenizer: Tokenizer, tokens: Sequence[int]) -> int:
    return sum(map(len, tokenizer.pieces(tokens)))
