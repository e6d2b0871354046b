"""The `data:` section of a configuration: corpora, subwords, filters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Discriminator, Field, Tag, model_validator

from nmt.config.file_path import FilePath
from nmt.config.structure import Structure
from nmt.data.context import BREAK, MOST

Language = Annotated[str, Field(max_length=35, pattern=r"^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$")]
"""A short name such as ``de``, ``pt-BR`` or ``zh_Hans``."""

MANY_IDENTICAL = 0.2
"""Share of identical pairs from which on a corpus may be of one language, such as corrections of errors."""


class CorpusConfig(Structure):
    """Parallel text: two files that correspond line by line, or one of pairs; see ``nmt.data.corpus``."""

    source: FilePath | None = None
    """File of source sentences, one per line."""
    target: FilePath | None = None
    """File of target sentences, one per line."""
    pairs: FilePath | None = None
    """Instead of both: a file of pairs (TSV, CSV, JSON lines, TMX, XLIFF, ZIP of two text files)."""
    languages: tuple[Language, Language] | None = None
    """Languages of source and target, such as [de, en]; given for all corpora or for none."""

    unescape: bool = False
    """Replace HTML entities such as &quot; by their characters."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        lacks = [side for side in ("source", "target") if getattr(self, side) is None]
        if self.pairs is not None and len(lacks) < 2:
            raise ValueError("a corpus has either pairs or source and target; remove one of them")
        if self.pairs is None and lacks:
            missing = "both are missing" if len(lacks) == 2 else f"{lacks[0]} is missing"
            raise ValueError(f"a corpus needs source and target, or pairs; {missing}")
        if self.languages is not None and self.languages[0] == self.languages[1]:
            raise ValueError(f"languages: source and target are both {self.languages[0]}; name two languages")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """The one or two files of the corpus, source first."""
        return tuple(filter(None, (self.pairs, self.source, self.target)))

    @property
    def name(self) -> str:
        """Name of the corpus in messages and reports: its files."""
        return " + ".join(str(file) for file in self.files)

    @property
    def target_language(self) -> str | None:
        """Target language of the corpus, if it has languages; else None."""
        return None if self.languages is None else self.languages[1]

    @property
    def language_names(self) -> tuple[str, str] | None:
        """Source and target language: `languages`, or if it is not set those in the names of two files, such as
        `train.de.gz` and `train.en.gz`; None if these contain no languages."""
        if self.languages is not None or len(self.files) == 1:
            return self.languages
        ends = [
            [part for part in file.suffixes if part not in (".gz", ".xz", ".bz2", ".zst", ".txt")][-1:]
            for file in self.files
        ]
        source, target = ("".join(end).removeprefix(".") for end in ends)
        return (source, target) if source and target and source != target else None


class TrainingCorpusConfig(CorpusConfig):
    """A corpus to train on."""

    weight: float = Field(
        1.0, gt=0, le=1000, description="how often each pair is seen in an epoch; 0.5: a different half in each epoch"
    )
    links: FilePath | None = None
    """File of word links for training.guided_attention: a Pharaoh line (0-0 1-2) for each pair."""


class ImportedConfig(Structure):
    """A model that another toolkit has trained, on text that is not available; `nmt import` writes this section."""

    name: str
    """The folder or repository that it came from."""
    languages: tuple[str, ...] = ()
    """Target languages that it has tokens for, such as fra."""
    licence: str | None = None
    """The licence that its model card names."""


class SubwordsConfig(Structure):
    """The tokenizer: SentencePiece, learned from the training corpora, or an existing model."""

    model: FilePath | None = None
    """Run directory, prepared folder or .model file whose subwords to use; default: learn new ones."""
    kind: Literal["unigram", "bpe", "char", "word"] = Field("unigram", description="the segmentation model")
    size: int = Field(8000, ge=8, le=1_000_000)
    """Entries of a vocabulary, including the 4 special ones; a limit for char and word."""
    min_frequency: int = Field(1, ge=1, le=1_000_000_000)
    """For word: words that occur more rarely in the pairs of the vocabulary are unknown."""
    joint: bool = True
    """One vocabulary for both languages, or one for each."""
    character_coverage: float = Field(1.0, ge=0.98, le=1)
    """Share of the text's characters that the vocabulary covers; others are unknown."""
    normalization: Literal["nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfc", "identity"] = "nmt_nfkc"
    """Unicode normalization, also of what the model writes: those of SentencePiece, of which cf folds case and identity
    keeps all, or nfc, which only joins letters and their accents and removes byte order marks."""
    byte_fallback: bool = False
    """Spell unknown characters as UTF-8 bytes, so that nothing is unknown."""
    sampling: float = Field(0.0, ge=0, le=1)
    """Draw new segmentations in each epoch: smoothing alpha of unigram, or dropout rate of BPE; 0: off."""
    split_digits: bool = False
    """For unigram and bpe: make every digit a subword, so that a number is copied digit by digit."""
    training_sentences: int = Field(200_000, ge=1)
    """Pairs drawn from the corpora to learn the vocabulary from; bounds memory and time."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.model is not None:
            for name, field in type(self).model_fields.items():
                if name not in ("model", "joint", "sampling") and getattr(self, name) != field.default:
                    raise ValueError(f"{name} is that of the model that is given; leave it out")
        if self.sampling and self.kind in ("char", "word"):
            raise ValueError(f"sampling needs kind unigram or bpe: {self.kind} has one segmentation only")
        if self.min_frequency > 1 and self.kind != "word":
            raise ValueError(f"min_frequency needs kind word: {self.kind} spells rare words by parts; leave it out")
        if self.split_digits and self.kind in ("char", "word"):
            raise ValueError(f"split_digits needs kind unigram or bpe, not {self.kind}; leave it out")
        if self.byte_fallback and self.kind == "word":
            raise ValueError("byte_fallback needs kind unigram, bpe or char")
        if self.byte_fallback and self.size < 256 + 8:
            raise ValueError(f"size {self.size} is too small for byte_fallback, whose bytes alone take 256")
        return self


class FiltersConfig(Structure):
    """Training pairs to drop. Pairs with a blank side are always dropped; validation pairs are never dropped."""

    max_length: int = Field(200, ge=1)
    """Most subwords on either side."""
    max_ratio: float = Field(9.0, ge=1)
    """Largest ratio of the longer to the shorter side, in subwords."""
    identical: bool = True
    """Drop pairs whose sides are the same text."""
    duplicates: bool = True
    """Drop repeated pairs, across all corpora."""
    near_duplicates: bool = False
    """Drop pairs that differ from an earlier one only in case, punctuation, digits or spaces."""
    control_characters: bool = True
    """Drop pairs with control characters or a byte order mark."""
    held_out: Literal["pair", "source", "none"] = "pair"
    """Drop pairs that are in valid or test: compare both sides (pair) or only the source."""

    @model_validator(mode="after")
    def _equal_is_near(self) -> Self:
        if self.near_duplicates and not self.duplicates:
            raise ValueError("near_duplicates drops equal pairs too; leave duplicates on, or near_duplicates off")
        return self


AnyCorpus = TypeVar("AnyCorpus", bound=CorpusConfig)


def _one_or_list(value: object) -> str:
    """Returns the form of a value, one or a list, so that errors are about that form only."""
    return "list" if isinstance(value, list | tuple) else "corpus"


OneOrMore = Annotated[
    Annotated[AnyCorpus, Tag("corpus")] | Annotated[tuple[AnyCorpus, ...], Tag("list")], Discriminator(_one_or_list)
]


class DataConfig(Structure):
    """Settings that `nmt prepare` reads."""

    prepared: FilePath | None = None
    """Folder of the prepared corpus, which several runs can share; default: prepared in the run."""
    imported: ImportedConfig | None = None
    """In the run of an imported model, instead of corpora: what is known of it."""
    train: OneOrMore[TrainingCorpusConfig]
    """Corpus or list of corpora."""
    temperature: float = Field(
        1.0, ge=0.1, le=100,
        description="T: a language direction with n pairs gets a share of an epoch in proportion to n^(1/T). "
        "1 leaves the corpora as they are; a larger T shows small corpora more often",
    )  # fmt: skip
    valid: OneOrMore[CorpusConfig] | None = None
    """Corpus or list of corpora to validate on; never filtered."""
    test: OneOrMore[CorpusConfig] = ()
    """Corpora that are held out of training, and scored by nmt evaluate."""
    old_domain: CorpusConfig | None = None
    """For fine-tuning: pairs of the old domain, whose BLEU and chrF validations measure as well."""
    context: int = Field(
        0, ge=0, le=MOST,
        description="source sentences that the model reads before each one: the lines before it in its corpus, up to a "
        "blank one, which ends a document",
    )  # fmt: skip
    faulty: Literal["drop", "refuse"] = "drop"
    """Rows that are no pairs, such as lines without exactly one TAB: drop up to a share of 5 %."""
    subwords: SubwordsConfig = Field(SubwordsConfig(), description="how text is divided into tokens")
    filters: FiltersConfig = FiltersConfig()
    """Training pairs that are dropped."""
    workers: int | None = Field(None, ge=1, le=1024)
    """Threads that tokenise; default: one per core."""

    @model_validator(mode="after")
    def _some_train(self) -> Self:
        if not self.train_corpora and self.imported is None:
            raise ValueError("train is an empty list; name a corpus")
        if self.train_corpora and self.imported is not None:
            raise ValueError("imported is for a model without corpora of its own, and there is train; leave it out")
        return self

    @model_validator(mode="after")
    def _languages_agree(self) -> Self:
        held_out = (*self.valid_corpora, *self.test_corpora)
        corpora = (*self.train_corpora, *held_out)
        without = [corpus for corpus in corpora if corpus.languages is None]
        if len(without) == len(corpora):
            if self.temperature != 1:
                raise ValueError("temperature weighs languages, and no corpus has languages; leave temperature out")
        elif without:
            raise ValueError(f"{without[0].name} has no languages, as others have; give it languages: [source, target]")
        for corpus in held_out:
            if corpus.languages is not None and corpus.languages[1] not in self.target_languages:
                raise ValueError(
                    f"{corpus.name} is into {corpus.languages[1]}, and none of train is; add one, or leave it out"
                )
        return self

    @property
    def train_corpora(self) -> tuple[TrainingCorpusConfig, ...]:
        """The training corpora, one or more; none in the run of an imported model."""
        return self.train if isinstance(self.train, tuple) else (self.train,)

    @property
    def language_names(self) -> tuple[str, str] | None:
        """Source and target language of the first training corpus; None if they are unknown, as in an imported run."""
        return self.train_corpora[0].language_names if self.train_corpora else None

    @property
    def source_language(self) -> str | None:
        """Code of the source language, such as `pt` for `pt-BR`; None if it is unknown or there are several."""
        names = {(corpus.language_names or ("",))[0].lower() for corpus in self.train_corpora}
        return re.split("[-_]", names.pop())[0] or None if len(names) == 1 else None

    @property
    def valid_corpora(self) -> tuple[CorpusConfig, ...]:
        """The validation corpora, any number."""
        return self.valid if isinstance(self.valid, tuple) else () if self.valid is None else (self.valid,)

    @property
    def target_languages(self) -> tuple[str, ...]:
        """Target languages of the training corpora, sorted; empty if the corpora have no languages."""
        if self.imported is not None:
            return self.imported.languages
        return tuple(sorted({corpus.languages[1] for corpus in self.train_corpora if corpus.languages is not None}))

    @property
    def control_pieces(self) -> tuple[str, ...]:
        """Control pieces of the source vocabulary: one for each target language and, with context, the mark behind a
        previous sentence."""
        return (*(f"<2{language}>" for language in self.target_languages), *([BREAK] if self.context else []))

    @property
    def test_corpora(self) -> tuple[CorpusConfig, ...]:
        """The test corpora, any number."""
        return self.test if isinstance(self.test, tuple) else (self.test,)
