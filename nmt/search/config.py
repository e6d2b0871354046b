"""The search section of a configuration."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from nmt.config.structure import Structure


class SamplingConfig(Structure):
    """Translations drawn at random. See ``nmt.search.sampling``."""

    temperature: Annotated[float, Field(gt=0.0, le=100.0)] = 1.0
    """Tokens are drawn from softmax(logits / temperature): below 1 the probable ones become more so."""
    top_k: Annotated[int, Field(gt=0, le=1 << 20)] | None = None
    """Draw from that many most probable tokens alone; null: from all."""
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Draw from the fewest tokens that have this probability together."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Another seed draws other translations, the same one the same."""


class ConsensusConfig(Structure):
    """Minimum Bayes risk: of several drawn translations the one most like the others. See
    ``nmt.evaluation.consensus``."""

    samples: Annotated[int, Field(ge=2, le=10_000)] = 32
    """How many are drawn, as ``sampling`` says."""
    utility: Literal["chrf", "bleu"] = "chrf"
    """What likeness is: sentence chrF2 or sentence BLEU."""


class SearchConfig(Structure):
    """How translations are looked for."""

    to: str | None = None
    """Target language of a model of several, one of ``data.train``'s ``languages``; null: the only one."""
    beam: Annotated[int, Field(gt=0, le=1000)] = 5
    """Hypotheses kept at each step; 1 is greedy search."""
    n_best: Annotated[int, Field(gt=0, le=1000)] = 1
    """Translations wanted of each sentence: of at most as many beams, or that many draws."""
    length_penalty: Annotated[float, Field(ge=0.0, le=100.0)] = 1.0
    """Exponent of the length penalty; 0 ranks by plain log-probability. See ``nmt.search.scoring``."""
    length_normalization: Literal["gnmt", "average"] = "gnmt"
    """What has that exponent: GNMT's (5 + length) / 6, or the length, as in a mean over tokens."""
    coverage_penalty: Annotated[float, Field(ge=0.0, le=1e6)] = 0.0
    """GNMT's beta: how much it counts against a hypothesis that parts of the source got no attention."""
    min_length: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """A translation has at least this many tokens, where the source allows any."""
    max_length: Annotated[int, Field(gt=0, le=1_000_000)] | None = None
    """A translation has at most this many tokens, whatever the ratio says; null: no such limit."""
    max_length_ratio: Annotated[float, Field(gt=0.0, le=100.0)] = 2.0
    """A translation has at most this many tokens for each source token, and ten more."""
    no_repeat: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """No sequence of that many tokens comes twice in a translation; 0: whatever comes."""
    suppress_padding: Literal["plain", "renormalized"] | None = None
    """For a model that gives the padding token a probability, as imported ones may: it is never chosen. ``plain``: the
    probabilities of the others stay; ``renormalized``: they sum to 1 without it."""
    groups: Annotated[int, Field(gt=0)] = 1
    """Diverse beam search: the beams are kept apart in that many groups."""
    diversity: Annotated[float, Field(ge=0.0, le=1e6)] = 0.5
    """What a token costs in a group for each beam of the groups before it that took the same at this step."""
    sampling: SamplingConfig | None = None
    """Draw translations instead of searching for the most probable; null: search."""
    consensus: ConsensusConfig | None = None
    """Draw many translations and take the one most like the others; null: do not."""
    shortlist: bool = False
    """Choose among the target subwords that ``nmt shortlist`` found for the source subwords of a sentence: faster, and
    seldom another translation."""
    replace_unknown: bool = False
    """Put the source word that got most attention where a translation has an unknown token."""
    markup: bool = False
    """Carry tags, entities, URLs, numbers and placeholders over unchanged, and capitals of whole lines. See
    ``nmt.extras.markup.markup``."""
    stand_in: Annotated[str, Field(pattern=r"^\S+$")] | None = "X"
    """With ``markup``: the word that the model sees for a URL, an e-mail address or a placeholder, best a common noun
    of its source language; null: the thing itself, and numbers as they are too."""
    document: bool = False
    """Translate running text: each line sentence by sentence, with the white space between them as it is."""
    split_longer_than: Annotated[int, Field(gt=0, le=1_000_000)] | Literal["trained"] | None = "trained"
    """A line of more subwords is translated in pieces; trained: than 99 of 100 training sentences; null: never."""
    max_source_tokens: Annotated[int, Field(gt=0, le=1_000_000)] = 1000
    """A longer source sentence, or piece of one, is cut there, with a warning."""
    batch_tokens: Annotated[int, Field(gt=0, le=1 << 40)] = 8192
    """Source tokens decoded together, padding included and each counted for every beam or draw."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.sampling is None and self.consensus is None and self.n_best > self.beam:
            needed = f"{self.n_best} translations need as many beams, not {self.beam}"
            raise ValueError(f"n_best: {needed}; set beam to {self.n_best}")
        if self.consensus is not None and self.n_best > self.consensus.samples:
            raise ValueError(f"n_best: {self.n_best} translations need at least as many consensus.samples")
        if self.beam % self.groups:
            raise ValueError(f"groups: {self.beam} beams cannot be shared out equally among {self.groups} groups")
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length: {self.min_length} is more than max_length, {self.max_length}")
        return self
