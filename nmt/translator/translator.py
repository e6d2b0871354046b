"""A trained model as an object: what the commands and a Python program use.

>>> import nmt
>>> translator = nmt.load("runs/de-en")
>>> (translation,) = translator.translate(["Der Hund schläft."])
>>> translation.text  # such as "The dog is sleeping."
'...'
>>> (alignment,) = translator.align(["Der Hund schläft."], [translation.text])
>>> alignment.weights_TS.shape == (len(translation.text.split()), 3)
True
>>> (score,) = translator.score(["Der Hund schläft."], [translation.text])
>>> abs(score.log_prob - sum(score.token_log_probs)) < 1e-3
True

In a Jupyter notebook each of these results, and the list of them, is shown as HTML (see ``nmt.core.notebook``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.alignment import Links, Method
from nmt.alignment.extract import Extraction
from nmt.alignment.forced import forced_weights
from nmt.alignment.formats import Alignment, Level
from nmt.alignment.gradient import GradientMethod, gradient_weights
from nmt.alignment.unknown import copied, with_copies
from nmt.alignment.words import NO_WORD, parts, speaking, to_words, to_words_of_parts
from nmt.core import log, notebook
from nmt.core.errors import InputError
from nmt.core.notebook import Results
from nmt.data.tokenizer import EncodedWords, Tokenizer
from nmt.data.vocabulary import EOS, UNK
from nmt.data.words import text_words
from nmt.evaluation.consensus import consensus
from nmt.evaluation.perplexity import Prediction, predict
from nmt.evaluation.rescore import token_log_probs
from nmt.extras.export.export_model import exported_engine
from nmt.extras.markup.text_spans import PieceWeights
from nmt.extras.word_aligner.aligner import WordAligner, between_words, learnt_alignments
from nmt.extras.word_aligner.files import has_aligner, trained_aligner
from nmt.extras.word_aligner.layer import AlignmentLayer
from nmt.extras.word_aligner.layer import weights as layer_weights
from nmt.models.ensemble import Ensemble
from nmt.models.feed import Feed, TeacherForcing
from nmt.models.step_model import StepModel
from nmt.search.config import SearchConfig
from nmt.search.constrained import Phrase
from nmt.search.decode import constrains, ranking_of
from nmt.search.engine import Engine, OwnEngine
from nmt.search.hypothesis import Hypothesis
from nmt.translator.find_run import run_of
from nmt.translator.loading import Trained, load_trained
from nmt.translator.segmentation import Passages
from nmt.translator.translation import Translation
from nmt.workflows.shortlist import read_shortlist

EngineName = Literal["nmt", "ctranslate2"]

USUAL_CHARACTERS = 1000
"""A longer line is not split into subwords with the others of its window, before it is known whether it is cut into
pieces: the subwords of many such lines take memory."""


@dataclass(frozen=True)
class PairScore:
    """How probable the model finds a translation."""

    score: float
    """``log_prob`` over the length penalty."""
    log_prob: float
    """Natural logarithm of its probability, end-of-sentence included."""
    tokens: tuple[str, ...]
    """Its subwords, end-of-sentence included."""
    token_log_probs: tuple[float, ...]
    """Of each of them, given those before."""

    def _repr_html_(self) -> str:
        """For a notebook: the score, and the subwords, the redder the less probable."""
        shares = [1 - math.exp(each) for each in self.token_log_probs]
        notes = [f"log-probability {notebook.figure(each)}" for each in self.token_log_probs]
        return notebook.table(
            [
                ("score", notebook.figure(self.score)),
                ("log-probability", notebook.figure(self.log_prob)),
                ("subwords", notebook.tinted(self.tokens, shares, notes)),
            ]
        )


class Translator:
    """Translates, scores and aligns sentences with one model."""

    def __init__(
        self,
        trained: Trained,
        search: SearchConfig,
        extraction: Extraction,
        engine: Engine | None = None,
        *,
        threads: int = 1,
    ) -> None:
        """``engine`` finds translations, None: our own search with the model; the model scores and aligns. Texts are
        split into subwords by ``threads``."""
        self.trained = trained
        self.search = search
        self.extraction = extraction
        self._engine = OwnEngine(trained.model, trained.compute) if engine is None else engine
        self._threads = threads
        if trained.experiment.model.attention.is_none:
            for key in ("coverage_penalty", "replace_unknown"):
                if getattr(search, key):
                    raise InputError(f"{trained.checkpoint}: has no attention, which search.{key} needs; leave it out")

    def searching(self, search: SearchConfig) -> Translator:
        """The same models with another search."""
        other = copy(self)
        other.search = search
        return other

    def extracting(self, extraction: Extraction) -> Translator:
        """The same models with another rule for links, or other heads."""
        other = copy(self)
        other.extraction = extraction
        return other

    def translate(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        constraints: Sequence[Sequence[str]] | None = None,
    ) -> Results[Translation]:
        """One translation for each text, in order; a blank text gives a blank one. The others in the list do not change
        a text's translation, but for rounding in bfloat16 on a CPU with AMX. A translation begins with the text's
        prefix, where there is one that is not blank, and contains its constraints; see ``candidates``."""
        return Results(best for best, *_ in self.candidates(texts, prefixes=prefixes, constraints=constraints))

    def candidates(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        constraints: Sequence[Sequence[str]] | None = None,
        first_line: int = 1,
        scored: bool = True,
    ) -> list[tuple[Translation, ...]]:
        """Of each text up to ``search.n_best`` translations, the best first, or, of a sampling, as they were drawn; of
        a blank text one, which is blank. Each contains the words and phrases of the text's ``constraints``. Raises
        InputError for a phrase that the vocabulary cannot spell, with its line, ``first_line`` being the first text's,
        and for a search that knows no constraints. Where scores are not wanted, another engine may leave them out: they
        are NaN then.

        A text that is too long for the model (``search.split_longer_than``), or all where ``search.document`` says so,
        are translated in pieces, unless they have a prefix or constraints; see ``nmt.translator.segmentation``."""
        phrases = None if constraints is None else self._phrases(constraints, first_line)
        whole = [bool((prefixes and prefixes[row].strip()) or (phrases and phrases[row])) for row in range(len(texts))]
        encode, lengths = self.trained.tokenizers.source.encode, self.trained.lengths
        as_they_are = not (self.search.markup or self.search.document)
        known = self._subwords([text for text in texts if as_they_are and len(text) <= USUAL_CHARACTERS])

        def count(text: str) -> int:
            tokens = known[text] if text in known else encode(text)
            if len(tokens) <= lengths.longest:  # it may be a piece: not all parts of a long line
                known[text] = tokens
            return len(tokens)

        passages = Passages(self.search, self.extraction, lengths, count, texts, whole)
        known |= self._subwords([piece for piece in passages.pieces if piece not in known])
        found = self._sentences(
            passages.pieces,
            [known[piece] for piece in passages.pieces],
            prefixes=None if prefixes is None else passages.of_line(prefixes),
            phrases=None if phrases is None else passages.of_line(phrases),
            scored=scored,
        )
        return passages.joined(found, self.looks)

    def sentences(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        phrases: Sequence[Sequence[Phrase]] | None = None,
    ) -> list[tuple[Translation, ...]]:
        """As ``candidates``, but each text as it stands, with constraints in subwords."""
        known = self._subwords(texts)
        encoded = [known[text] for text in texts]
        return self._sentences(texts, encoded, prefixes=prefixes, phrases=phrases, scored=True)

    def _subwords(self, texts: Sequence[str]) -> dict[str, list[int]]:
        """What each text is for the model."""
        return dict(zip(texts, self.trained.tokenizers.source.encode_batch(texts, threads=self._threads), strict=True))

    def _sentences(
        self,
        texts: Sequence[str],
        encoded: Sequence[Sequence[int]],
        *,
        prefixes: Sequence[str] | None,
        phrases: Sequence[Sequence[Phrase]] | None,
        scored: bool,
    ) -> list[tuple[Translation, ...]]:
        tokenizers, limit = self.trained.tokenizers, self.search.max_source_tokens
        cut = [max(0, len(tokens) - limit) for tokens in encoded]
        rows = [row for row, tokens in enumerate(encoded) if tokens and not texts[row].isspace()]
        given = None if prefixes is None else [tokenizers.target.encode(prefixes[row]) for row in rows]
        found = self._engine.decode(
            [encoded[row][:limit] for row in rows],
            self.search,
            prefixes=given if given is not None and any(given) else None,
            constraints=None if phrases is None else [phrases[row] for row in rows],
            scored=scored,
        )
        spelt = self._spelt([texts[row] for row in rows], found)
        candidates: dict[int, tuple[Translation, ...]] = {}
        for row, hypotheses in zip(rows, found, strict=True):
            candidates[row] = self._chosen(
                [
                    Translation(
                        text := next(spelt),
                        each.score,
                        each.log_prob,
                        cut[row],
                        tuple(tokenizers.target.pieces(each.tokens)),
                        ((texts[row], text),),
                        len(each.tokens),
                    )
                    for each in hypotheses
                ]
            )
        return [
            candidates[row] if row in candidates else (Translation("", 0.0, 0.0, parts=((text, ""),)),)
            for row, text in enumerate(texts)
        ]

    def _phrases(self, constraints: Sequence[Sequence[str]], first_line: int) -> list[list[Phrase]]:
        """Subwords of each phrase that is not blank."""
        if (key := constrains(self.search)) is not None:
            raise InputError(f"search.{key}: cannot be had together with constraints; leave it at its default")
        encode = self.trained.tokenizers.target.encode
        found: list[list[Phrase]] = []
        for number, phrases in enumerate(constraints, first_line):
            found.append([])
            for phrase in phrases:
                tokens = tuple(encode(phrase))
                if UNK in tokens:
                    raise InputError(f"line {number}: {phrase!r} cannot be spelt in the model's subwords; leave it out")
                if tokens:
                    found[-1].append(tokens)
        return found

    def _spelt(self, texts: Sequence[str], found: Sequence[tuple[Hypothesis, ...]]) -> Iterator[str]:
        """The text of each hypothesis, text by text."""
        tokenizer = self.trained.tokenizers.target
        pairs = [(text, each.tokens) for text, hypotheses in zip(texts, found, strict=True) for each in hypotheses]
        unknown = [place for place, (_, tokens) in enumerate(pairs) if UNK in tokens]
        replaced: dict[int, str] = {}
        if self.search.replace_unknown and unknown:
            encode_words, limit = self.trained.tokenizers.source.encode_words, self.search.max_source_tokens
            sources = [encode_words(pairs[place][0]) for place in unknown]
            targets = [pairs[place][1] for place in unknown]
            weights = self._matrices(["attention"], [each.ids[:limit] for each in sources], targets)["attention"]
            for place, source, tokens, weights_TS in zip(unknown, sources, targets, weights, strict=True):
                copies = copied(source, tokens, weights_TS, unknown=UNK)
                replaced[place] = with_copies(tokenizer.decode(tokens), copies)
        decoded = tokenizer.decode_batch([tokens for _, tokens in pairs])
        return (replaced.get(place, text) for place, text in enumerate(decoded))

    def _chosen(self, found: Sequence[Translation]) -> tuple[Translation, ...]:
        """Those that are wanted of what a search has found."""
        if self.search.consensus is None:
            return tuple(found)
        agreed = consensus([each.text for each in found], self.search.consensus.utility)[: self.search.n_best]
        return tuple(replace(found[place], score=utility) for place, utility in agreed)

    def warn_of_cuts(self, translations: Sequence[Translation], *, first_line: int = 1) -> None:
        """Says which lines were cut, and why."""
        for warning in self.cuts(translations, first_line=first_line):
            log.warning(warning)

    def cuts(self, translations: Sequence[Translation], *, first_line: int = 1) -> list[str]:
        """What is to be said of lines that were cut."""
        said = []
        for number, translation in enumerate(translations, first_line):
            if translation.cut:
                one = len(translation.parts) <= 1
                what = f"{'its last ' if one else ''}{translation.cut} subwords are left out"
                said.append(
                    f"line {number}: {what}: {'it' if one else 'a piece of it'} has more than "
                    f"search.max_source_tokens ({self.search.max_source_tokens})"
                )
        return said

    @property
    def methods(self) -> tuple[Method, ...]:
        """How this model can align: a model without attention does not by attention, and one for which no aligner was
        learnt does not by that."""
        learnt: tuple[Method, ...] = ("trained",) if has_aligner(self.trained) else ()
        if self.trained.experiment.model.attention.is_none:
            return ("gradient", "input-x-gradient", *learnt)
        return ("attention", "shifted-attention", "gradient", "input-x-gradient", *learnt)

    def check_method(self, method: Method) -> None:
        """Raises InputError for a method that the model or its precision does not admit."""
        if method in get_args(GradientMethod) and self.trained.compute.precision == "int8":
            raise InputError("--precision int8: has no gradients to align by; use float32 or bfloat16")
        if method == "trained":
            _ = self._learnt
        elif method not in self.methods:
            raise InputError(
                f"{self.trained.checkpoint}: has no attention to align by (model.attention.score: none); "
                "use --method gradient, or input-x-gradient"
            )

    def align(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        level: Level = "word",
        method: Method = "attention",
        first_line: int = 1,
        text: bool = False,
    ) -> Results[Alignment]:
        """One alignment for each pair, by forced decoding: links between white-space words, and the soft matrix between
        words or, at level ``subword``, between pieces. A pair with a blank side has no links and an empty matrix.
        With ``text`` the lines are ordinary text: its words are found, and each punctuation mark is one of its own (see
        ``nmt.data.words``).

        ``method`` says where the soft matrix comes from; gradients take far longer than attention. Raises InputError
        for a method that the model does not admit, for different numbers of sources and targets, and for a side of more
        subwords than ``search.max_source_tokens``, which would take memory by the square; ``first_line`` is the first
        pair's number.
        """
        found = self.align_by((method,), sources, targets, level=level, first_line=first_line, text=text)
        return Results(found[method])

    def align_by(
        self,
        methods: Sequence[Method],
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        level: Level = "word",
        first_line: int = 1,
        text: bool = False,
    ) -> dict[Method, list[Alignment]]:
        """What ``align`` gives, by each of several methods; those by gradients share the work."""
        for method in methods:
            self.check_method(method)
        if level == "subword" and "trained" in methods:
            raise InputError("--level subword: --method trained aligns words; leave it out")
        source_words, target_words = self._encoded_pairs(sources, targets, first_line, text=text)
        rows = [row for row in range(len(sources)) if source_words[row].ids and target_words[row].ids]
        weighing = [method for method in methods if method != "trained"]
        found = self._matrices(
            weighing, [source_words[row].ids for row in rows], [target_words[row].ids for row in rows]
        )
        alignments: dict[Method, list[Alignment]] = {}
        if "trained" in methods:
            alignments["trained"] = self._by_training(source_words, target_words, first_line, text=text)
        for method in weighing:
            weights = dict(zip(rows, found[method], strict=True))
            alignments[method] = [
                self._alignment(source, target, weights.get(row), level, text=text)
                for row, (source, target) in enumerate(zip(source_words, target_words, strict=True))
            ]
        return alignments

    def looks(self, sources: Sequence[str], targets: Sequence[str]) -> list[PieceWeights]:
        """Of each pair the soft alignment between subwords with the place of each in its text: by attention, or by
        gradients where the model has none. What is longer than ``search.max_source_tokens`` is left out."""
        limit, tokenizers = self.search.max_source_tokens, self.trained.tokenizers
        source_pieces = [tokenizers.source.encode_spans(text) for text in sources]
        target_pieces = [tokenizers.target.encode_spans(text) for text in targets]
        method = self.methods[0]
        sources_ids, targets_ids = [ids[:limit] for ids, _ in source_pieces], [ids for ids, _ in target_pieces]
        found = self._matrices([method], sources_ids, targets_ids)[method]
        return [
            PieceWeights(weights_TS, tuple(target), tuple(source[:limit]))
            for weights_TS, (_, source), (_, target) in zip(found, source_pieces, target_pieces, strict=True)
        ]

    def score(self, sources: Sequence[str], targets: Sequence[str], *, first_line: int = 1) -> Results[PairScore]:
        """How probable the model finds given translations, under teacher forcing. Raises InputError for what ``align``
        raises it for."""
        source_words, target_words = self._encoded_pairs(sources, targets, first_line)
        found = token_log_probs(
            self.trained.model,
            [each.ids for each in source_words],
            [each.ids for each in target_words],
            self.trained.compute,
            batch_tokens=self.search.batch_tokens,
        )
        ranking = ranking_of(self.search)
        scores: Results[PairScore] = Results()
        for target, log_p_T in zip(target_words, found, strict=True):
            log_prob = float(log_p_T.sum(dtype=np.float64))
            tokens = tuple(self.trained.tokenizers.target.pieces([*target.ids, EOS]))
            score = log_prob / ranking.penalty(len(tokens))
            scores.append(PairScore(score, log_prob, tokens, tuple(log_p_T.tolist())))
        return scores

    def _encoded_pairs(
        self, sources: Sequence[str], targets: Sequence[str], first_line: int, *, text: bool = False
    ) -> tuple[list[EncodedWords], list[EncodedWords]]:
        """Both sides, none of them too long."""
        if len(sources) != len(targets):
            raise InputError(f"{len(sources)} sources but {len(targets)} targets: give one target for each source")
        tokenizers = self.trained.tokenizers
        source_words = [_encoded(tokenizers.source, each, text=text) for each in sources]
        target_words = [_encoded(tokenizers.target, each, text=text) for each in targets]
        for number, pair in enumerate(zip(source_words, target_words, strict=True), first_line):
            longest = max(len(side.ids) for side in pair)
            if longest > self.search.max_source_tokens:
                raise InputError(
                    f"line {number}: {longest} subwords are more than search.max_source_tokens "
                    f"({self.search.max_source_tokens}); split the line, or raise the limit with --set"
                )
        return source_words, target_words

    def _matrices(
        self, methods: Sequence[Method], sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> dict[Method, list[NDArray[np.float32]]]:
        """For each method the matrices weights_TS of pairs of token ids."""
        model, compute, batch_tokens = self.trained.model, self.trained.compute, self.search.batch_tokens
        found: dict[Method, list[NDArray[np.float32]]] = {}
        by_attention: Mapping[Method, bool] = {"attention": False, "shifted-attention": True}
        for method, shifted in by_attention.items():
            if method in methods:
                found[method] = forced_weights(
                    model,
                    sources,
                    targets,
                    compute,
                    batch_tokens=batch_tokens,
                    heads=self.extraction.heads,
                    shifted=shifted,
                )
        by_gradient = [method for method in get_args(GradientMethod) if method in methods]
        if by_gradient:
            pairs = gradient_weights(model, sources, targets, compute, methods=by_gradient, batch_tokens=batch_tokens)
            for place, method in enumerate(by_gradient):
                found[method] = [matrices[place] for matrices in pairs]
        return found

    @cached_property
    def _learnt(self) -> tuple[WordAligner, AlignmentLayer]:
        return trained_aligner(self.trained)

    def _by_training(
        self, sources: Sequence[EncodedWords], targets: Sequence[EncodedWords], first_line: int, *, text: bool
    ) -> list[Alignment]:
        """What the aligner says and what the model does, each its share, between words. The model's is the mean of its
        layer and, where it has any, its attention, which takes other things for alike. Of a word without a subword of
        its own the model knows nothing, and the aligner speaks alone."""
        aligner, layer = self._learnt
        found = aligner.matrices(
            [each.words for each in sources], [each.words for each in targets], first_line=first_line
        )
        rows = [row for row in range(len(sources)) if sources[row].ids and targets[row].ids]
        source_ids, target_ids = [sources[row].ids for row in rows], [targets[row].ids for row in rows]
        between_pieces = layer_weights(
            layer,
            self.trained.model,
            source_ids,
            target_ids,
            self.trained.compute,
            batch_tokens=self.search.batch_tokens,
        )
        looks = self._matrices(["attention"], source_ids, target_ids) if "attention" in self.methods else {}
        for place, (row, matrices) in enumerate(zip(rows, between_pieces, strict=True)):
            word_T, word_S = (np.array(speaking(each), dtype=np.int64) for each in (targets[row], sources[row]))
            speaks_TS = np.ix_(word_T != NO_WORD, word_S != NO_WORD)
            count_I, count_J = (
                np.bincount(word_of_piece[word_of_piece != NO_WORD], minlength=len(each.words))
                for word_of_piece, each in ((word_T, targets[row]), (word_S, sources[row]))
            )
            forward_TS, backward_TS = (weights_TS[speaks_TS] for weights_TS in matrices)
            by_model = between_words(forward_TS, backward_TS, count_I.tolist(), count_J.tolist())
            if looks:
                look_IJ = _between_words(looks["attention"][place], sources[row], targets[row], text=text)
                by_model = (by_model[0] + look_IJ) / 2, (by_model[1] + look_IJ) / 2
            is_known_IJ = (count_I > 0)[:, None] & (count_J > 0)
            share_IJ = (1 - self.extraction.aligner_share) * is_known_IJ.astype(np.float32)
            forward_IJ, backward_IJ = (
                one + share_IJ * (other - one) for one, other in zip(found[row], by_model, strict=True)
            )
            found[row] = forward_IJ, backward_IJ
        return learnt_alignments(
            [each.words for each in sources],
            [each.words for each in targets],
            found,
            [each.word_spans for each in sources],
            [each.word_spans for each in targets],
        )

    def predict(self, sources: Sequence[str], targets: Sequence[str], feed: Feed | None = None) -> Prediction:
        """How well the model predicts given translations, reading what ``feed`` chooses; None: teacher forcing."""
        tokenizers = self.trained.tokenizers
        return predict(
            self.trained.model,
            [tokenizers.source.encode(text) for text in sources],
            [tokenizers.target.encode(text) for text in targets],
            feed or TeacherForcing(),
            self.trained.compute,
            batch_tokens=self.search.batch_tokens,
        )

    def _alignment(
        self, source: EncodedWords, target: EncodedWords, weights_TS: np.ndarray | None, level: Level, *, text: bool
    ) -> Alignment:
        tokenizers = self.trained.tokenizers
        source_tokens = tuple(tokenizers.source.pieces([*source.ids, EOS]))
        target_tokens = tuple(tokenizers.target.pieces([*target.ids, EOS]))
        links: Links = ()
        if weights_TS is None:  # a side has nothing to look at, or nothing to look from
            words_IJ = np.full((len(target.words), len(source.words)), 1.0 / max(len(source.words), 1))
            pieces_TS = np.full((len(target_tokens), len(source_tokens)), 1.0 / len(source_tokens))
        else:
            words_IJ = _between_words(weights_TS, source, target, text=text)
            pieces_TS = weights_TS.astype(np.float64)
            links = self.extraction.links(words_IJ)
        at_words = Alignment(
            source.words,
            target.words,
            links,
            words_IJ,
            source_spans=source.word_spans,
            target_spans=target.word_spans,
        )
        if level == "word":
            return at_words
        return replace(
            at_words,
            weights_TS=pieces_TS,
            level="subword",
            source_tokens=source_tokens,
            target_tokens=target_tokens,
            scores=tuple(float(words_IJ[column, row]) for row, column in links),
        )


def _encoded(tokenizer: Tokenizer, line: str, *, text: bool) -> EncodedWords:
    return tokenizer.encode_words(line, text_words(line) if text else None)


def _between_words(
    weights_TS: np.ndarray, source: EncodedWords, target: EncodedWords, *, text: bool
) -> NDArray[np.float64]:
    if text:
        return to_words_of_parts(weights_TS, parts(target), parts(source))
    return to_words(
        weights_TS,
        [*speaking(target), NO_WORD],
        [*speaking(source), NO_WORD],
        len(target.words),
        len(source.words),
    )


def load(
    model: str | Path | None = None,
    *,
    device: str = "auto",
    precision: str = "auto",
    overrides: Sequence[str] = (),
    ensemble: Sequence[str | Path] = (),
    engine: EngineName = "nmt",
) -> Translator:
    """A translator from a run directory, a checkpoint folder or a config; None: the run under ``runs/`` trained last.

    ``overrides`` are ``dotted.key=value`` changes of the run's config, such as ``search.beam=1``. The models of
    ``ensemble``, of the same vocabulary, translate together with the first, each step by the mean of what they find
    probable. ``engine`` translates: our own search or, of a model that ``nmt export`` has written, CTranslate2, whose
    precision is then ``precision``. Raises InputError.
    """
    threads = torch.get_num_threads()  # now: CTranslate2 sets it to one
    if engine == "ctranslate2":
        if ensemble:
            raise InputError("--ensemble: --engine ctranslate2 knows one model; use --engine nmt")
        trained = load_trained(model, overrides, device=device, precision="float32")
        exported = exported_engine(trained, device=device, precision=precision)
        exported.check(trained.experiment.search)
        return Translator(trained, trained.experiment.search, trained.experiment.alignment, exported, threads=threads)
    trained = load_trained(model, overrides, device=device, precision=precision)
    models = [trained.model]
    for name in ensemble:
        other = load_trained(name, device=device, precision=precision)
        if other.tokenizers.fingerprint != trained.tokenizers.fingerprint:
            raise InputError(
                f"{other.checkpoint}: has another vocabulary than {trained.checkpoint}, and an ensemble needs models "
                f"of one: train with data.subwords: {{model: {run_of(trained.checkpoint)}}}"
            )
        models.append(other.model)
    searched: StepModel[Any, Any] = Ensemble(models) if ensemble else trained.model
    shortlist = read_shortlist(trained) if trained.experiment.search.shortlist else None
    own = OwnEngine(searched, trained.compute, shortlist)
    return Translator(trained, trained.experiment.search, trained.experiment.alignment, own, threads=threads)
