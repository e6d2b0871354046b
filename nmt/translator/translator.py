"""A trained model as an object, which the commands and Python programs use.

>>> import nmt
>>> translator = nmt.load("runs/de-en")
>>> translation = translator.translate("Der Hund bellt oft.")
>>> translation.text  # such as "The dog often barks."
'...'
>>> alignment = translator.align("Der Hund bellt oft.", translation.text)
>>> alignment.weights_TS.shape == (len(translation.text.split()), 4)
True
>>> score = translator.score("Der Hund bellt oft.", translation.text)
>>> abs(score.log_prob - sum(score.token_log_probs)) < 1e-3
True

In a Jupyter notebook each of these results, and the list of them, is shown as HTML (see ``nmt.core.notebook``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, overload

from nmt import plugins
from nmt.alignment import Method
from nmt.config.structure import dump, validate
from nmt.config.yaml_source import Override, parse_document
from nmt.core.errors import InputError
from nmt.data.batching import TokenIds
from nmt.data.vocabulary import UNK
from nmt.search.config import SearchConfig, constrains
from nmt.search.hypothesis import Constraint, Hypothesis
from nmt.translator.arguments import check_pairs, check_texts, library
from nmt.translator.loading import TrainedModel, load_trained
from nmt.translator.segmentation import Markup, Segmentation
from nmt.translator.translation import Results, Translation

if TYPE_CHECKING:
    from torch import device as Device

    from nmt.alignment.formats import Alignment, Level
    from nmt.data.context import DocumentContext
    from nmt.evaluation.perplexity import Prediction
    from nmt.models.feed import Feed
    from nmt.models.seq2seq import Seq2Seq
    from nmt.models.step_model import StepModel
    from nmt.translator.aligner import Aligner
    from nmt.translator.confidence import Estimator
    from nmt.translator.scorer import PairScore

WIDEST = 4
"""Maximum factor by which the numbers of hypotheses and beams are increased if texts of an n-best list repeat each
other."""

KEPT = re.compile(r"[\d¼-¾⅐-⅞@]|://|www\.")
"""What numbers, URLs and e-mail addresses have."""

USUAL_CHARACTERS = 1000
"""Number of characters above which a line is not split into subwords together with its window, but only when it is
known to be one piece, because the subwords of many such lines take much memory."""


class Candidate(NamedTuple):
    """A translation of a sentence, with its hypothesis."""

    text: str
    hypothesis: Hypothesis


Ranked = TypeVar("Ranked", Candidate, Translation)


@dataclass(frozen=True)
class EncodedSentences:
    """Sentences for a search, with the prefixes and constraints of their translations."""

    texts: Sequence[str]
    ids: TokenIds
    """The tokens that the model reads, including the token for a language."""
    prefixes: TokenIds | None
    constraints: Sequence[Sequence[Constraint]] | None

    def only(self, rows: Sequence[int]) -> EncodedSentences:
        """Selects some of the sentences by their indices."""
        values = (self.texts, self.ids, self.prefixes, self.constraints)
        return EncodedSentences(*(None if each is None else [each[row] for row in rows] for each in values))  # type: ignore[arg-type]


class Engine(Protocol):
    """Translates any number of sentences."""

    def translate_ids(
        self, sources: TokenIds, config: SearchConfig, *, prefixes: TokenIds | None = None,
        constraints: Sequence[Sequence[Constraint]] | None = None, scored: bool = True,
    ) -> list[tuple[Hypothesis, ...]]:  # fmt: skip
        """Finds hypotheses of each source (token ids without end-of-sentence), in the order of the sources, best first
        or, for sampling, in the order of the draws: at most ``config.n_best`` of each, or ``config.consensus.samples``
        to choose from. Hypotheses begin with their source's prefix and meet each of its constraints; neither counts
        against the limits of length. Without ``scored``, scores and log-probabilities may be NaN."""


class Terminology(Protocol):
    """Puts the terms of a glossary into translations."""

    def revised(
        self, translator: Translator, sentences: EncodedSentences, found: Sequence[list[Candidate]]
    ) -> list[list[Candidate]]:
        """Revises the translations ``found`` for each sentence, so that they contain the terms."""


@dataclass(frozen=True)
class Translator:
    """Translates, scores and aligns sentences with one model."""

    trained: TrainedModel
    search: SearchConfig
    engine: Engine
    """Finds translations. Scores and alignments come from the model."""
    threads: int = 1
    """Threads that split texts into subwords."""
    heads: str | None = None
    """Pattern over the names of the heads that alignments use; None means the heads of the configuration."""
    terminology: Terminology | None = None
    """Puts terms into translations."""
    estimator: Estimator | None = None
    """Adds the confidence to translations."""

    def __repr__(self) -> str:
        label = self.trained.compute.label if self.has_own_engine else type(self.engine).__name__
        return f"Translator({str(self.trained.checkpoint)!r}, {label})"

    def __post_init__(self) -> None:
        _ = self._markup  # raises if it is not installed
        keys = [key for key in ("coverage_penalty", "replace_unknown") if getattr(self.search, key)]
        if keys and not self.trained.experiment.model.head_names:
            raise InputError(f"{self.trained.checkpoint}: has no attention, which search.{keys[0]} needs; leave it out")

    @property
    def has_own_engine(self) -> bool:
        """True if our own search translates. Another engine may have loaded no model."""
        return hasattr(self.engine, "compute")

    @cached_property
    def aligner(self) -> Aligner:
        """Aligner with the same model."""
        from nmt.translator.aligner import Aligner

        extraction = self.trained.experiment.alignment
        if self.heads is not None:
            extraction = extraction.model_copy(update={"heads": self.heads})
        return Aligner(self.trained, extraction)

    @property
    def _markup(self) -> Markup | None:
        """Takes care of tags in lines, with ``search.markup``."""
        if not self.search.markup:
            return None
        run = self.trained.run if self.search.numbers else None
        return partial(plugins.find("parts", "markup", "search.markup"), run=run)

    @property
    def model(self) -> Seq2Seq[Any, Any]:
        """The model, a ``torch.nn.Module``, in the state in which it translates: frozen, in eval mode, and in the
        precision of ``nmt.load``. Some of its parts may have been replaced by faster ones."""
        return self.trained.model

    @library
    def to(self, device: str | Device | None = None, *, target_language: str | None = None) -> Translator:
        """Returns a translator with the same weights, read from the checkpoint again, on another device in the same
        precision, or into another target language of the model, or both; None means no change. This translator does not
        change. Raises InputError for a device or a language that does not exist, and for an engine that cannot be
        moved."""
        translator = self if device is None else self._on_device(str(device))
        if target_language is None:
            return translator
        trained = translator.trained.to(target_language)
        search = self.search.model_copy(update={"to": trained.experiment.search.to})
        return replace(translator, trained=trained, search=search)

    def _on_device(self, device: str) -> Translator:
        from nmt.search.engine import TorchEngine

        trained = self.trained
        if device in trained.experiment.data.target_languages:
            raise InputError(f"device={device!r}: is a language; write to(target_language={device!r})")
        if not isinstance(self.engine, TorchEngine) or self.engine.model is not self.model:
            raise InputError(f"device={device!r}: this engine or ensemble stays where it is; use nmt.load with device")
        loaded = load_trained(trained.checkpoint.resolve(), device=device, precision=trained.compute.precision)
        engine = replace(self.engine, model=loaded.model, compute=loaded.compute)
        return replace(self, trained=replace(loaded, experiment=trained.experiment), engine=engine)

    def save(self, output: str | Path) -> None:
        """Writes the model into a folder to hand on, or an archive where the name ends in .zip, as
        `nmt export --to nmt` does. Raises InputError for a folder that holds anything else."""
        save: Callable[[TrainedModel, Path], None] = plugins.find("parts", "save_model", "save")
        save(self.trained, Path(output))

    def document(self) -> DocumentContext:
        """Creates a reader of lines in document order. Its ``sentences`` are the lines, and ``translate``, ``align``,
        ``score`` and ``predict`` know the lines before each of them, up to a blank one. Raises InputError for a model
        without context."""
        from nmt.data.context import DocumentContext

        if self.trained.experiment.data.context == 0:
            raise InputError(f"--context: {self.trained.run} was trained without data.context; leave it out")
        return DocumentContext()

    def reporting(self, on_batch: Callable[[int], object]) -> Translator:
        """Returns the same translator, whose search calls a function with the number of sentences of each batch."""
        from nmt.search.engine import TorchEngine

        if not isinstance(self.engine, TorchEngine):
            return self
        return replace(self, engine=replace(self.engine, on_batch=on_batch))

    @overload
    def translate(self, texts: str, *, beam: int | None = ..., n_best: int | None = ...,  # type: ignore[overload-overlap]
                  length_penalty: float | None = ...,
                  max_length_ratio: float | None = ..., target_language: str | None = ...,
                  ) -> Translation: ...  # fmt: skip
    @overload
    def translate(self, texts: Iterable[str], *, beam: int | None = ..., n_best: int | None = ...,
                  length_penalty: float | None = ..., max_length_ratio: float | None = ...,
                  target_language: str | None = ..., prefixes: Sequence[str] | None = ...,
                  constraints: Sequence[Sequence[str]] | None = ...) -> Results[Translation]: ...  # fmt: skip
    @library
    def translate(
        self, texts: str | Iterable[str], *, beam: int | None = None, n_best: int | None = None,
        length_penalty: float | None = None, max_length_ratio: float | None = None, target_language: str | None = None,
        prefixes: Sequence[str] | None = None, constraints: Sequence[Sequence[str]] | None = None,
    ) -> Translation | Results[Translation]:  # fmt: skip
        """Translates a text, or several texts, in order. A blank text gives a blank translation. The translation of a
        text does not depend on the others in the list, except for rounding in bfloat16 on a CPU with AMX.

        ``beam``, ``n_best``, ``length_penalty`` and ``max_length_ratio`` are the keys of ``search`` with these names;
        with ``n_best`` a translation has ``alternatives``. ``target_language`` is for a model of several. A translation
        begins with the text's prefix, unless that is blank, and contains its constraints; see ``candidates``. Raises
        InputError for invalid values, and for values that are not text."""
        given = {"beam": beam, "n_best": n_best, "length_penalty": length_penalty, "max_length_ratio": max_length_ratio}
        changes = [Override(f"{key}={one}", f"{key}={one!r}") for key, one in given.items() if one is not None]
        translator = self.to(target_language=target_language)
        if changes:
            search = validate(SearchConfig, parse_document(dump(translator.search), "search", changes))
            translator = replace(translator, search=search)
        sources = [texts] if isinstance(texts, str) else check_texts(texts, "texts")
        ranked = translator.candidates(sources, prefixes=prefixes, constraints=constraints)
        found = Results(replace(best, alternatives=tuple(others)) if others else best for best, *others in ranked)
        return found[0] if isinstance(texts, str) else found

    def candidates(
        self, texts: Sequence[str], *, prefixes: Sequence[str] | None = None,
        constraints: Sequence[Sequence[str]] | None = None, first_line: int = 1, scored: bool = True,
    ) -> list[tuple[Translation, ...]]:  # fmt: skip
        """Finds up to ``search.n_best`` translations of each text, best first or, with sampling, in the order of the
        draws; a blank text has one blank translation. Each contains the words and phrases of the text's
        ``constraints``. Raises InputError for a prefix or phrase that the vocabulary cannot spell, with its line, and
        for a search that does not support constraints; ``first_line`` is the line of the first text. Without
        ``scored``, another engine may omit scores, which are then NaN.

        Each text is in an n-best list once, with the best of its segmentations: if several hypotheses have the same
        text, a wider search looks for others. The list is shorter if this finds too few. Draws may repeat each other.

        A text of several lines is translated line by line. A line that is too long for the model
        (``search.split_longer_than``), or that holds several sentences if the model was trained on single ones, is
        translated in pieces, unless it has a prefix or constraints. A piece without a letter is copied; see
        ``nmt.translator.segmentation``."""
        if constraints is not None and (key := constrains(self.search)) is not None:
            raise InputError(f"search.{key}: cannot be had together with constraints; leave it at its default")
        phrases: list[list[Constraint]] = [
            [(tuple(tokens),) for phrase in of_line if (tokens := self._spell(phrase, line))]
            for line, of_line in enumerate(constraints or [()] * len(texts), first_line)
        ]
        prefix_ids = [self._spell(text, line) for line, text in enumerate(prefixes or [""] * len(texts), first_line)]
        whole = [bool(prefix or of_line) for prefix, of_line in zip(prefix_ids, phrases, strict=True)]
        encode, longest = self.trained.tokenizers.source.encode, self.trained.lengths.longest
        is_plain = not (self.search.markup or self.search.document)
        subwords = self._subwords([text for text in texts if is_plain and len(text) <= USUAL_CHARACTERS])

        def count(text: str) -> int:
            tokens = subwords[text] if text in subwords else encode(text)
            if len(tokens) <= longest:  # it may be a piece; other parts of long lines are not kept
                subwords[text] = tokens
            return len(tokens)

        segmentation = Segmentation(self.search, self.trained, count, self._markup, texts, whole)
        subwords |= self._subwords([text for text in segmentation.texts if text not in subwords])
        sentences = segmentation.texts
        limit = self.search.max_source_tokens
        rows = [row for row, text in enumerate(sentences) if subwords[text] and not text.isspace()]
        prefixes_of, phrases_of = segmentation.per_segment(prefix_ids), segmentation.per_segment(phrases)
        searched = EncodedSentences(
            [sentences[row] for row in rows],
            self.trained.prefixed((subwords[sentences[row]][:limit] for row in rows), (sentences[row] for row in rows)),
            prefixes=[prefixes_of[row] for row in rows] if any(prefixes_of) else None,
            constraints=None if constraints is None else [phrases_of[row] for row in rows],
        )
        found = self._search(searched, self.search, scored)
        if self.terminology is not None:
            found = self.terminology.revised(self, searched, found)
        elif self.search.numbers and any(map(KEPT.search, [*searched.texts, *(a.text for row in found for a in row)])):
            found = plugins.find("parts", "numbers", "search.numbers")(self, searched, found)
        translations: list[tuple[Translation, ...]] = [
            (Translation("", 0.0, 0.0, parts=((text, ""),)),) for text in sentences
        ]
        for row, ranked in zip(rows, found, strict=True):
            source = sentences[row]
            translations[row] = self._translations(source, max(0, len(subwords[source]) - limit), ranked)
        joined = segmentation.join(translations, lambda: self.aligner)
        if self.search.n_best > 1 and self.search.sampling is None:
            # capitals and tags that are put back may make texts equal
            joined = [tuple(distinct(of_line)) for of_line in joined]
        return joined if self.estimator is None else self.estimator.with_confidence(self.trained, texts, joined)

    def _search(self, sentences: EncodedSentences, search: SearchConfig, scored: bool) -> list[list[Candidate]]:
        """Finds the translations of each sentence; see ``candidates``."""
        n_best, prefixes, constraints = self.search.n_best, sentences.prefixes, sentences.constraints
        hypotheses = self.engine.translate_ids(
            sentences.ids, search, prefixes=prefixes, constraints=constraints, scored=scored
        )
        lists = self.with_texts(sentences, hypotheses)
        if n_best == 1 or search.sampling is not None or search.consensus is not None:  # consensus counts equal draws
            return lists
        best = [distinct(ranked) for ranked in lists]
        # a list that is not full cannot be extended
        short = [row for row, ranked in enumerate(lists) if len(ranked) == search.n_best and len(best[row]) < n_best]
        if short and search.n_best < WIDEST * n_best:
            wider = search.model_copy(update={"n_best": 2 * search.n_best, "beam": 2 * search.beam})
            for row, more in zip(short, self._search(sentences.only(short), wider, scored), strict=True):
                best[row] = distinct(sorted([*best[row], *more], key=lambda candidate: -candidate.hypothesis.score))
        return [ranked[:n_best] for ranked in best]

    def with_texts(
        self, sentences: EncodedSentences, hypotheses: Sequence[tuple[Hypothesis, ...]]
    ) -> list[list[Candidate]]:
        """Returns the hypotheses of each sentence with their texts, in which ``search.replace_unknown`` copies source
        words."""
        tokenizers = self.trained.tokenizers
        of_sentences = zip(sentences.texts, hypotheses, strict=True)
        pairs = [(source, hypothesis.tokens) for source, ranked in of_sentences for hypothesis in ranked]
        texts = tokenizers.target.detokenize_batch([tokens for _, tokens in pairs])
        unknown = [index for index, (_, tokens) in enumerate(pairs) if UNK in tokens]
        if self.search.replace_unknown and unknown:
            from nmt.alignment.request import AlignmentRequest
            from nmt.alignment.unknown import copied, with_copies

            sources, targets = zip(*(pairs[index] for index in unknown), strict=True)
            encoded = [tokenizers.source.encode_words(source) for source in sources]
            source_ids = [words.ids[: self.search.max_source_tokens] for words in encoded]
            (weights,) = self.aligner.matrices([AlignmentRequest("attention")], source_ids, targets, sources).values()
            for index, words, tokens, weights_TS in zip(unknown, encoded, targets, weights, strict=True):
                texts[index] = with_copies(texts[index], copied(words, tokens, weights_TS, unknown=UNK))
        remaining = iter(texts)
        return [[Candidate(next(remaining), hypothesis) for hypothesis in ranked] for ranked in hypotheses]

    def translate_sentences(self, texts: Sequence[str]) -> list[tuple[Translation, ...]]:
        """Finds translations, like ``candidates``, of texts that are neither running text nor have markup."""
        plain = {"markup": False, "document": False}
        return replace(self, search=self.search.model_copy(update=plain)).candidates(texts)

    @overload
    def align(self, sources: str, targets: str, *, level: Level = ..., method: Method = ...,  # type: ignore[overload-overlap]
              text: bool = ...) -> Alignment: ...  # fmt: skip
    @overload
    def align(self, sources: Iterable[str], targets: Iterable[str], *, level: Level = ..., method: Method = ...,
              first_line: int = ..., text: bool = ...) -> Results[Alignment]: ...  # fmt: skip
    @library
    def align(
        self, sources: str | Iterable[str], targets: str | Iterable[str], *, level: Level = "word", method: Method =
        "attention", first_line: int = 1, text: bool = False,
    ) -> Alignment | Results[Alignment]:  # fmt: skip
        """Aligns a pair, or each of several pairs, by one method; see ``nmt.translator.aligner.Aligner.align``."""
        from nmt.alignment.request import AlignmentRequest

        request, pairs = AlignmentRequest(method), check_pairs(sources, targets)
        found = self.aligner.align([request], *pairs, level=level, first_line=first_line, text=text)[request]
        return found[0] if isinstance(sources, str) else Results(found)

    @overload
    def score(self, sources: str, targets: str) -> PairScore: ...  # type: ignore[overload-overlap]
    @overload
    def score(self, sources: Iterable[str], targets: Iterable[str], *, first_line: int = ...) -> Results[PairScore]: ...
    @library
    def score(
        self, sources: str | Iterable[str], targets: str | Iterable[str], *, first_line: int = 1
    ) -> PairScore | Results[PairScore]:
        """Computes the probability of a given translation, or of several; see
        ``nmt.translator.scorer.Scorer.score``."""
        from nmt.translator.scorer import Scorer

        scores = Scorer(self.trained).score(*check_pairs(sources, targets), first_line=first_line)
        return scores[0] if isinstance(sources, str) else scores

    def predict(self, sources: Sequence[str], targets: Sequence[str], feed: Feed | None = None) -> Prediction:
        """Computes loss, perplexity and accuracy on given translations; see
        ``nmt.translator.scorer.Scorer.predict``."""
        from nmt.translator.scorer import Scorer

        return Scorer(self.trained).predict(sources, targets, feed)

    def cut_warnings(self, translations: Sequence[Translation], *, first_line: int = 1) -> list[str]:
        """Returns a warning for each line whose source was too long and was cut, and one warning for all lines of
        several sentences that were translated as one because of a prefix, constraints or ``--wait``."""
        from nmt.data.sentences import sentence_spans

        trained, limit, warnings, whole = self.trained, self.search.max_source_tokens, list[str](), list[int]()
        should_split = trained.reads_single_sentences and trained.experiment.search.split_longer_than is not None
        language = trained.experiment.data.source_language
        for number, translation in enumerate(translations, first_line):
            parts = translation.parts
            if should_split and len(parts) == 1 and len(sentence_spans(parts[0][0], language)) > 1:
                whole.append(number)
            if translation.cut:
                last, it = ("its last ", "it") if len(parts) <= 1 else ("", "a piece of it")
                what = f"line {number}: {last}{translation.cut} subwords are left out"
                warnings.append(f"{what}: {it} has more than search.max_source_tokens ({limit})")
        if whole:
            others = f" and {len(whole) - 1} others" if whole[1:] else ""
            first = f"line {whole[0]}{others}: translated as a whole though the model was trained on single sentences"
            warnings.insert(0, f"{first}, so that some may be lost; give each a line of its own")
        return warnings

    def _subwords(self, texts: Sequence[str]) -> dict[str, list[int]]:
        """Encodes each text as source subwords."""
        return dict(zip(texts, self.trained.tokenizers.source.encode_batch(texts, threads=self.threads), strict=True))

    def _translations(self, source: str, cut: int, ranked: Sequence[Candidate]) -> tuple[Translation, ...]:
        """Builds the translations of a sentence, of which ``cut`` subwords were left out, from texts and hypotheses."""
        candidates = []
        for text, hypothesis in ranked:
            tokens = tuple(self.trained.tokenizers.target.pieces(hypothesis.tokens))
            parts, score, log_prob = ((source, text),), hypothesis.score, hypothesis.log_prob
            candidates.append(Translation(text, score, log_prob, cut, tokens, parts, longest=len(tokens)))
        if self.search.consensus is not None:
            from nmt.evaluation.consensus import consensus

            utilities = consensus([one.text for one in candidates])
            best_of = {one.text: one for one in sorted(candidates, key=lambda one: one.log_prob)}  # best of equal texts
            best = utilities[: self.search.n_best]
            candidates = [replace(best_of[candidates[rank].text], score=utility) for rank, utility in best]
        return tuple(candidates)

    def _spell(self, text: str, line: int) -> list[int]:
        """Encodes text that a translation must contain as target subwords. Raises InputError for text that the model
        cannot write."""
        tokens = self.trained.tokenizers.target.encode(text) if text else []
        if UNK in tokens:
            raise InputError(f"line {line}: {text!r} cannot be spelt in the model's subwords; leave it out")
        return tokens


def distinct(ranked: Iterable[Ranked]) -> list[Ranked]:
    """Returns the translations without those whose text an earlier one has."""
    first: dict[str, Ranked] = {}
    for translation in ranked:
        first.setdefault(translation.text, translation)
    return list(first.values())


Loader: TypeAlias = Callable[..., Translator]
"""``nmt.load``, or a function with the same arguments."""


def torch_engine(trained: TrainedModel, others: Sequence[TrainedModel]) -> Engine:
    """Our own search with a model, or with an ensemble of it and others. Raises InputError for other vocabularies."""
    from nmt.search.engine import TorchEngine

    for other in others:
        if other.tokenizers.fingerprint != trained.tokenizers.fingerprint:
            raise InputError(
                f"{other.checkpoint}: has another vocabulary than {trained.checkpoint}, and an ensemble needs models "
                f"of one: train with data.subwords: {{model: {trained.run}}}"
            )
    searched: StepModel[Any, Any] = trained.model
    if others:
        from nmt.models.ensemble import Ensemble

        searched = Ensemble([member.model for member in (trained, *others)])
    return TorchEngine(searched, trained.compute, of_characters=trained.tokenizers.target.of_characters)
