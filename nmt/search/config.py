"""The search section of a configuration."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from nmt.config.structure import Structure

USUAL_PENALTY = 1.0
"""The exponent of the length penalty that is used if none is set and none was chosen."""


class SamplingConfig(Structure):
    """Translations drawn at random. See ``nmt.search.sampling``."""

    temperature: Annotated[float, Field(gt=0.0, le=100.0)] | None = None
    """Temperature of the distribution that tokens are drawn from, softmax(logits / temperature): values below 1 make
    probable tokens more probable. null: 1, and 0.5 for consensus."""
    top_k: Annotated[int, Field(gt=0, le=1 << 20)] | None = None
    """Draw only from this many most probable tokens; null means from all."""
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Draw from the fewest tokens whose total probability reaches this."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Seed of the draws."""


class ConsensusConfig(Structure):
    """Minimum Bayes risk decoding: the drawn translation that is most similar to the others. See
    ``nmt.evaluation.consensus``."""

    samples: Annotated[int, Field(ge=2, le=10_000)] = 32
    """Number of draws, made with the settings of sampling."""


class SearchConfig(Structure):
    """The search for translations."""

    to: str | None = None
    """Target language, one of ``data.train``'s ``languages``, for a model of several; null means the only one."""
    beam: Annotated[int, Field(gt=0, le=1000)] = 5
    """Hypotheses kept at each step; 1 is greedy search."""
    n_best: Annotated[int, Field(gt=0, le=1000)] = 1
    """Number of translations of each sentence: at most the beam size, or as many draws."""
    length_penalty: Annotated[float, Field(ge=0.0, le=100.0)] | None = None
    """Exponent of the length penalty; 0 ranks by log-probability. null: 1, until training chooses one on valid at its
    end. At most 1 for a sentence with a prefix or constraints. See ``nmt.search.scoring``."""
    length_normalization: Literal["gnmt", "average"] = "gnmt"
    """Base of that exponent: (5 + length) / 6 of GNMT, or the length, as in a mean over tokens."""
    coverage_penalty: Annotated[float, Field(ge=0.0, le=1e6)] = 0.0
    """Beta of GNMT: penalty for parts of the source that got no attention."""
    min_length: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """A translation has at least this many tokens, and one at any rate."""
    max_length: Annotated[int, Field(gt=0, le=1_000_000)] | None = None
    """A translation has at most this many tokens, in addition to the limit of the ratio; null means no limit."""
    max_length_ratio: Annotated[float, Field(gt=0.0, le=100.0)] = 2.0
    """A translation has at most this many tokens for each source token, and ten more."""
    no_repeat: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """No sequence of this many tokens occurs twice in a translation; 0 means no restriction."""
    repetition_margin: Annotated[float, Field(ge=0.0, le=1e6)] | None = 3.0
    """A subword that ends what a translation says twice, and its source once, counts as less probable by this natural
    logarithm; null: it does not, as in draws, in validations while training, with CTranslate2, and where subwords are
    characters. See ``nmt.search.repetition``."""
    numbers: bool = True
    """If a translation lacks a number, a code, a URL or an e-mail address of its source, or has a number of its own, it
    gives way to one with fewer such faults."""
    suppress_padding: Literal["plain", "renormalized"] | None = None
    """Never choose the padding token, to which imported models may give a probability. plain: the probabilities of the
    others stay; renormalized: they sum to 1 without it."""
    groups: Annotated[int, Field(gt=0)] = 1
    """Diverse beam search: number of groups of beams."""
    diversity: Annotated[float, Field(ge=0.0, le=1e6)] = 0.5
    """Penalty of a token for each beam of an earlier group that chose it at the same step."""
    sampling: SamplingConfig | None = None
    """Draw translations instead of searching for the most probable one; null means search."""
    consensus: ConsensusConfig | None = None
    """Draw many translations and choose the one most similar to the others; null means search."""
    replace_unknown: bool = False
    """Replace an unknown token by the source word that got the most attention."""
    markup: bool = False
    """Keep tags, entities, URLs, numbers and placeholders unchanged, and capitals of whole lines."""
    stand_in: Annotated[str, Field(pattern=r"^\S+$")] | None = "X"
    """Word that the model reads with ``markup`` instead of a URL, an e-mail address or a placeholder, best a common
    noun of its source language; null means that it reads the item itself, and numbers unchanged."""
    document: bool = False
    """Translate running text: translate each line sentence by sentence and keep the white space between sentences."""
    split_longer_than: Annotated[int, Field(gt=0, le=1_000_000)] | Literal["trained"] | None = "trained"
    """Lines with more subwords are translated in pieces; trained: more than 99 of 100 training sentences, and lines of
    several sentences where training lines held one; null: never."""
    max_source_tokens: Annotated[int, Field(gt=0, le=1_000_000)] = 1000
    """A longer source sentence, or part of one, is cut here, with a warning."""
    batch_tokens: Annotated[int, Field(gt=0, le=1 << 40)] = 8192
    """Source tokens decoded together, including padding, counted for every beam or draw; on a CPU half as many in
    greedy search, and on a GPU eight times as many."""

    @property
    def penalty(self) -> float:
        """The exponent of the length penalty."""
        return USUAL_PENALTY if self.length_penalty is None else self.length_penalty

    def with_given_words(self) -> SearchConfig:
        """Returns the search for a translation that must have some words. These may be improbable, and a larger length
        penalty would make up for that by more and more words."""
        return self.model_copy(update={"length_penalty": min(self.penalty, USUAL_PENALTY)})

    def for_validation(self, beam: int) -> SearchConfig:
        """Returns the search for one translation of each sentence, whose cost is that of the beam alone."""
        off = dict.fromkeys(("sampling", "consensus", "repetition_margin"))
        return self.model_copy(update={"beam": beam, "n_best": 1, "groups": 1, "numbers": False, **off})

    @model_validator(mode="before")
    @classmethod
    def _without_shortlist(cls, tree: Any) -> Any:
        """Accepts the ``shortlist: false`` that runs of earlier releases have; ``true`` is an error."""
        if isinstance(tree, dict) and tree.get("shortlist") is False:
            return {key: value for key, value in tree.items() if key != "shortlist"}
        return tree

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


def constrains(config: SearchConfig) -> str | None:
    """Returns the configuration key that rules out constraints, or None."""
    if config.sampling is not None or config.consensus is not None:
        return "sampling" if config.sampling is not None else "consensus"
    if config.groups > 1:
        return "groups"
    return "no_repeat" if config.no_repeat else None
