"""Translates any number of sentences, in batches of like length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from nmt.core.device import Compute
from nmt.data.batching import length_batches, pad
from nmt.data.vocabulary import EOS
from nmt.models.step_model import StepModel
from nmt.search.beam import BeamSearch
from nmt.search.config import SamplingConfig, SearchConfig
from nmt.search.constrained import ConstrainedBeamSearch, Phrase
from nmt.search.hypothesis import Hypothesis, Search
from nmt.search.logits_processors import Ban, NoRepeat, Rules, Shortest
from nmt.search.sampling import Sampling
from nmt.search.scoring import Ranking, max_lengths
from nmt.search.sequential import greedy_search


class ReducedBatch(Protocol):
    """A batch in which each sentence chooses among some tokens only, which have numbers of their own."""

    @property
    def model(self) -> StepModel[Any, Any]:
        """The model over these tokens."""

    @property
    def prefixes(self) -> Sequence[Sequence[int]] | None:
        """The prefixes of the batch in these tokens."""

    @property
    def phrases(self) -> tuple[tuple[Phrase, ...], ...] | None:
        """The constraints of the batch in these tokens."""

    def restored(self, row: int, hypothesis: Hypothesis) -> Hypothesis:
        """A hypothesis of a row of the batch, in tokens of the whole vocabulary."""


class VocabularyReducer(Protocol):
    """Chooses the target tokens that the sentences of a batch may need."""

    def reduce(
        self,
        model: StepModel[Any, Any],
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]] | None,
        phrases: tuple[tuple[Phrase, ...], ...] | None,
        device: torch.device,
    ) -> ReducedBatch:
        """The batch reduced; prefixes and phrases stay possible."""


@torch.inference_mode()
def decode(
    model: StepModel[Any, Any],
    sources: Sequence[Sequence[int]],
    config: SearchConfig,
    compute: Compute,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    constraints: Sequence[Sequence[Phrase]] | None = None,
    shortlist: VocabularyReducer | None = None,
    scored: bool = True,
) -> list[tuple[Hypothesis, ...]]:
    """The hypotheses of each source (token ids without end-of-sentence), in the order of the sources, best first or, of
    a sampling, as they are drawn: ``config.n_best`` of each, or ``config.consensus.samples``, from which to choose.

    Sentences are sorted by length and decoded in batches of at most ``config.batch_tokens`` source tokens, each counted
    for every hypothesis that is looked at together; which others share its batch does not change a sentence's result,
    but for rounding in bfloat16 on a CPU with AMX.
    Hypotheses begin with their source's prefix, where there is one, and contain each phrase of its constraints; neither
    is counted against the limits of length. Constraints are for a beam search in one group without ``no_repeat``. With
    a ``shortlist`` each sentence has no other tokens than those of its list, its prefix and its constraints. Unless
    ``scored`` a greedy search leaves out log-probabilities and scores, which are NaN then: that is faster, and finds
    the same. The model must be in eval mode.
    """
    assert not model.training
    assert constraints is None or constrains(config) is None
    found: list[tuple[Hypothesis, ...] | None] = [None] * len(sources)
    batch_tokens = max(config.batch_tokens // paths_of(config), 1)
    for rows in length_batches([len(source) + 1 for source in sources], batch_tokens):
        padded, length_B = pad([sources[row] for row in rows])
        max_length_B = max_lengths(torch.from_numpy(length_B), config.max_length_ratio, config.max_length)
        given: Sequence[Sequence[int]] | None = None if prefixes is None else [prefixes[row] for row in rows]
        if given is not None:
            max_length_B = max_length_B + torch.tensor([len(prefix) for prefix in given])
        phrases = None if constraints is None else tuple(tuple(constraints[row]) for row in rows)
        if phrases is not None:
            max_length_B = max_length_B + torch.tensor([sum(map(len, each)) for each in phrases])
        searched, reduced = model, None
        if shortlist is not None:
            reduced = shortlist.reduce(model, [sources[row] for row in rows], given, phrases, compute.device)
            searched, given, phrases = reduced.model, reduced.prefixes, reduced.phrases
        rules = Rules(max_length_B.to(compute.device), eos=EOS, prefixes=given, bans=_bans(config))
        with compute.autocast():
            best = search_of(config, phrases, scored=scored)(
                searched, torch.from_numpy(padded).to(compute.device), rules
            )
        for place, (row, each) in enumerate(zip(rows, best, strict=True)):
            found[row] = each if reduced is None else tuple(reduced.restored(place, one) for one in each)
    return [each for each in found if each is not None]


def paths_of(config: SearchConfig) -> int:
    """How many hypotheses of a sentence are looked at together."""
    if config.consensus is not None:
        return config.consensus.samples
    return config.beam if config.sampling is None else config.n_best


def constrains(config: SearchConfig) -> str | None:
    """The key of a configuration with which there can be no constraints; None: there can."""
    if config.sampling is not None or config.consensus is not None:
        return "sampling" if config.sampling is not None else "consensus"
    if config.groups > 1:
        return "groups"
    return "no_repeat" if config.no_repeat else None


def search_of(
    config: SearchConfig, phrases: tuple[tuple[Phrase, ...], ...] | None = None, *, scored: bool = True
) -> Search:
    """The search that a configuration describes; with ``phrases`` of each source row, one for what contains them. For
    ``scored`` see ``decode``."""
    ranking = ranking_of(config)
    if config.sampling is not None or config.consensus is not None:
        sampling = config.sampling or SamplingConfig()
        return Sampling(
            EOS,
            ranking,
            count=paths_of(config),
            seed=sampling.seed,
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
        )
    if phrases is not None:
        return ConstrainedBeamSearch(EOS, ranking, config.beam, n_best=config.n_best, phrases=phrases)
    if config.beam == 1:
        return greedy_search(EOS, ranking, scored)
    return BeamSearch(EOS, ranking, config.beam, n_best=config.n_best, groups=config.groups, diversity=config.diversity)


def ranking_of(config: SearchConfig) -> Ranking:
    """What a configuration ranks hypotheses by."""
    return Ranking(config.length_penalty, config.length_normalization, config.coverage_penalty)


def _bans(config: SearchConfig) -> list[Ban]:
    bans: list[Ban] = []
    if config.min_length > 0:
        bans.append(Shortest(config.min_length, eos=EOS))
    if config.no_repeat > 0:
        bans.append(NoRepeat(config.no_repeat))
    return bans
