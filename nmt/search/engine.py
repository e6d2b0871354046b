"""The toolkit's own engine, which finds translations by a search over a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from nmt import plugins
from nmt.core.device import Compute, uploaded
from nmt.data.batching import TokenIds, length_batches, pad
from nmt.data.vocabulary import EOS, PAD
from nmt.models.step_model import Interruptible, StepModel, WithoutToken
from nmt.search.config import SamplingConfig, SearchConfig, constrains
from nmt.search.hypothesis import Constraint, Hypothesis, Observer, Search
from nmt.search.logits_processors import LogitsProcessor, LogitsProcessors, NoRepeat, Suppress
from nmt.search.repetition import Repetitions
from nmt.search.scoring import max_lengths, ranking_of
from nmt.search.sequential import greedy_search

ON_GPU = 8
"""Factor by which more tokens are decoded together on a GPU, where a step of few rows takes as long as one of many."""

ConstrainedSearch: TypeAlias = Callable[
    [SearchConfig, tuple[tuple[Constraint, ...], ...], torch.Tensor | None, torch.Tensor | None], Search
]
"""Function that creates the search of a configuration, whose hypotheses meet the constraints of their source row. The
tensors, (V,), are true for the tokens that may follow a ``WORD_END`` and for those that phrases alone may have."""


@dataclass(frozen=True)
class TorchEngine:
    """The toolkit's own search over a model in eval mode.

    Sentences are sorted by length and decoded in batches of at most ``config.batch_tokens`` source tokens, each counted
    once for every hypothesis of its sentence, and on a CPU at least twice. The result of a sentence does not depend on
    its batch, except for rounding in bfloat16 on a CPU with AMX.
    """

    model: StepModel[Any, Any]
    compute: Compute
    follows_word_V: torch.Tensor | None = None
    """Mask of the tokens that may follow a word; needed for phrases with a ``WORD_END``."""
    reserved_V: torch.Tensor | None = None
    """Mask of the tokens that translations with constraints have in these alone."""
    of_characters: bool = False
    """Whether tokens are characters, which repeat one another too often for that to cost anything."""
    on_batch: Callable[[int], object] | None = None
    """Function that is called with the number of sentences of each finished batch."""
    on_step: Callable[[], object] | None = None
    """Function that is called before each step of a search; an exception that it raises ends the search. It may search
    with this engine itself."""
    observer: Observer = None
    """See ``Observer``."""

    @torch.inference_mode()
    def translate_ids(
        self, sources: TokenIds, config: SearchConfig, *, prefixes: TokenIds | None = None,
        constraints: Sequence[Sequence[Constraint]] | None = None, scored: bool = True,
    ) -> list[tuple[Hypothesis, ...]]:  # fmt: skip
        """See ``nmt.translator.translator.Engine``. Constraints need a beam search in one group without ``no_repeat``.
        Hypotheses always have scores."""
        assert not self.model.training
        assert constraints is None or constrains(config) is None
        hypotheses: list[tuple[Hypothesis, ...] | None] = [None] * len(sources)
        # a batch that keeps a CPU busy is too small for a GPU; on a CPU, greedy search was faster with half of a batch
        together, least = (1, 2) if self.compute.device.type == "cpu" else (ON_GPU, 1)
        batch_tokens = max(together * config.batch_tokens // max(hypotheses_per_sentence(config), least), 1)
        has_given = has_given_words(len(sources), prefixes, constraints)
        batches = length_batches([len(source) + 1 for source in sources], batch_tokens)
        parts = ([row for row in batch if has_given[row] is kind] for batch in batches for kind in (False, True))
        for rows in filter(None, parts):
            searching = config.with_given_words() if has_given[rows[0]] else config
            padded, length_B = pad([sources[row] for row in rows])
            max_length_B = max_lengths(length_B, config.max_length_ratio, config.max_length)
            batch_prefixes: TokenIds | None = None
            if prefixes is not None and has_given[rows[0]]:
                # the limit counts the tokens that the search adds to a prefix
                batch_prefixes = [prefixes[row] for row in rows]
                max_length_B += [len(prefix) for prefix in batch_prefixes]
            phrases = None
            if constraints is not None and (has_given[rows[0]] or self.reserved_V is not None):
                phrases = tuple(tuple(constraints[row]) for row in rows)
                # a hypothesis may need all of its phrases, in their longest variants, beyond the usual limit
                longest = [sum(max(map(len, constraint)) for constraint in of_sentence) for of_sentence in phrases]
                max_length_B += longest
            searched = self.model
            if config.suppress_padding == "renormalized":
                # the probability of padding goes to the other tokens; "plain" removes padding and keeps their logits
                searched = WithoutToken(searched, PAD)
            if self.on_step is not None:
                searched = Interruptible(searched, self.on_step)
            device = self.compute.device
            source_BS = uploaded(torch.from_numpy(padded), device)
            limit_B, restrictions, repetitions = torch.from_numpy(max_length_B), _processors(config), None
            if config.repetition_margin is not None and not self.of_characters:
                repetitions = Repetitions.of([sources[row] for row in rows], config.repetition_margin, device)
            processors = LogitsProcessors(
                limit_B, restrictions, eos=EOS, prefixes=batch_prefixes, repetitions=repetitions, device=device
            )
            if phrases is None:
                search = search_of(searching, observer=self.observer)
            else:
                constrained: ConstrainedSearch = plugins.find("parts", "constrained_search", "constraints")
                search = constrained(searching, phrases, self.follows_word_V, self.reserved_V)
            with self.compute.autocast():
                batch = search(searched, source_BS, processors)
            for row, of_sentence in zip(rows, batch, strict=True):
                # in the order of the sources again
                hypotheses[row] = of_sentence
            if self.on_batch is not None:
                self.on_batch(len(rows))
        return [of_sentence for of_sentence in hypotheses if of_sentence is not None]


def has_given_words(count: int, *given: Sequence[Sequence[Any]] | None) -> list[bool]:
    """Tells for each of a number of sentences whether any of the prefixes and constraints belongs to it."""
    return [any(len(words[row]) for words in given if words is not None) for row in range(count)]


def hypotheses_per_sentence(config: SearchConfig) -> int:
    """Number of hypotheses of a sentence that a search extends together."""
    if config.consensus is not None:
        return config.consensus.samples
    return config.beam if config.sampling is None else config.n_best


def search_of(config: SearchConfig, *, observer: Observer = None) -> Search:
    """Creates the search of a configuration."""
    ranking = ranking_of(config)
    if config.sampling is not None or config.consensus is not None:
        from nmt.search.sampling import Sampling

        sampling = config.sampling or SamplingConfig()
        return Sampling(
            EOS,
            ranking,
            count=hypotheses_per_sentence(config),
            seed=sampling.seed,
            # a consensus of improbable draws is poor
            temperature=sampling.temperature or (0.5 if config.consensus else 1.0),
            top_k=sampling.top_k,
            top_p=sampling.top_p,
        )
    if config.beam == 1:
        return greedy_search(EOS, ranking, observer)
    from nmt.search.beam import BeamSearch

    return BeamSearch(EOS, ranking, config.beam, config.n_best, config.groups, config.diversity, observer)


def _processors(config: SearchConfig) -> list[LogitsProcessor]:
    processors: list[LogitsProcessor] = [Suppress(EOS, before=max(config.min_length, 1))]
    if config.no_repeat > 0:
        processors.append(NoRepeat(config.no_repeat))
    if config.suppress_padding == "plain":
        processors.append(Suppress(PAD))
    return processors
