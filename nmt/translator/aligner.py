"""Alignments of sentence pairs by one model, by every method that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from nmt import plugins
from nmt.alignment import METHODS, GradientMethod, Links, Magnitude, Weights
from nmt.alignment.extract import Extraction
from nmt.alignment.request import BY_ATTENTION, AlignmentRequest
from nmt.core.errors import InputError
from nmt.data.tokenizer import EncodedWords
from nmt.data.vocabulary import EOS
from nmt.data.words import Span
from nmt.plugins import AlignmentMethod
from nmt.translator.find_run import run_of
from nmt.translator.loading import TrainedModel

if TYPE_CHECKING:
    from nmt.alignment.formats import Alignment, Level


class PieceWeights(NamedTuple):
    """A soft alignment between subwords, with end-of-sentence, and the span of each subword in its text."""

    weights_TS: NDArray[np.float32]
    target_spans: tuple[Span, ...]
    source_spans: tuple[Span, ...]


class LearntAligner(Protocol):
    """Aligns with what was learnt from text for one model."""

    def align(
        self,
        sources: Sequence[EncodedWords],
        targets: Sequence[EncodedWords],
        attention: Mapping[int, Weights],
        *,
        share: float,
        first_line: int,
    ) -> list[Alignment]:
        """Aligns the words of each pair. ``attention`` holds the model's weights between words, by the pair's row;
        ``share`` is the part of the result that does not come from the model. The alignment of a pair that is too long
        is blank; ``first_line`` is the number of the first pair."""


class Aligner:
    """Aligns sentence pairs with one model, by forced decoding."""

    def __init__(self, trained: TrainedModel, extraction: Extraction) -> None:
        """``extraction`` makes links of a soft alignment."""
        self.trained = trained
        self.extraction = extraction
        self._learnt: dict[str, LearntAligner] = {}

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of this model: none by attention where it has no attention, and those of plug-ins that have
        written into its run, as ``nmt aligner`` does."""
        run = run_of(self.trained.checkpoint)
        has_attention = bool(self.trained.experiment.model.head_names)
        learnt: Mapping[str, AlignmentMethod] = plugins.entries("methods")
        return (
            *(BY_ATTENTION if has_attention else ()),
            *get_args(GradientMethod),
            *(name for name, method in learnt.items() if all((run / file).exists() for file in method.files)),
        )

    def check_method(self, method: str) -> None:
        """Raises InputError for a method that the model or its precision does not admit."""
        if method in get_args(GradientMethod) and self.trained.compute.precision == "int8":
            raise InputError("--precision int8: has no gradients to align by; use float32 or bfloat16")
        if method not in METHODS:
            self._learnt_aligner(method)
        elif method not in self.methods:
            raise InputError(
                f"{self.trained.checkpoint}: has no attention to align by (model.attention.score: none); "
                "use --method gradient, or input-x-gradient"
            )

    def align(
        self,
        requests: Sequence[AlignmentRequest],
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        level: Level = "word",
        first_line: int = 1,
        text: bool = False,
    ) -> dict[AlignmentRequest, list[Alignment]]:
        """Aligns each pair for each request. An alignment has links between white-space
        words, and the soft matrix between words or, at level ``subword``, between pieces. A pair with a blank side has
        no links and an empty matrix. With ``text`` the lines are ordinary text, which is divided into words; each
        punctuation mark is a word of its own (see ``nmt.data.words``).

        A request for gradients may keep their magnitude; its links are those of the same method's relative weights.
        Gradients take far longer than attention; methods by gradients share the work, and so do heads. A pair that is
        too long (``TrainedModel.encode_pairs``) gets the alignment of a blank pair, and a warning names it;
        ``first_line`` is the number of the first pair. Raises InputError for a method that the model does not support,
        and for different numbers of sources and targets.
        """
        methods = list(dict.fromkeys(request.method for request in requests))
        for method in methods:
            self.check_method(method)
        learnt = [method for method in methods if plugins.has("methods", method)]
        if level == "subword" and learnt:
            raise InputError(f"--level subword: --method {learnt[0]} aligns words; leave it out")
        pairs = self.trained.encode_pairs(sources, targets, first_line, text=text)
        rows = [row for row, (source, target) in enumerate(pairs) if source.ids and target.ids]
        # a learnt aligner joins the attention between words to what it has learnt
        needs_attention = bool(learnt) and "attention" in self.methods
        attention = AlignmentRequest("attention")
        relative = {request: replace(request, magnitude="relative") for request in requests}  # for the links
        needed = dict.fromkeys([*requests, *relative.values(), *[attention] * needs_attention])
        source_ids, target_ids = ([pairs[row][side].ids for row in rows] for side in (0, 1))
        matrices = self.matrices(list(needed), source_ids, target_ids, [sources[row] for row in rows])
        alignments: dict[AlignmentRequest, list[Alignment]] = {}
        for request in requests:
            if request.method in learnt:
                by_attention = zip(rows, matrices[attention], strict=True) if needs_attention else ()
                alignments[request] = self._learnt_aligner(request.method).align(
                    [source for source, _ in pairs],
                    [target for _, target in pairs],
                    {row: word_weights(weights_TS, *pairs[row], text=text) for row, weights_TS in by_attention},
                    share=self.extraction.aligner_share,
                    first_line=first_line,
                )
            else:
                weights = dict(zip(rows, zip(matrices[request], matrices[relative[request]], strict=True), strict=True))
                alignments[request] = [
                    self._alignment(*pair, weights.get(row), level, request.magnitude, text=text)
                    for row, pair in enumerate(pairs)
                ]
        return alignments

    def piece_weights(self, sources: Sequence[str], targets: Sequence[str]) -> list[PieceWeights]:
        """Computes the soft alignment of each pair between subwords: by attention, or by gradients if the model has no
        attention. Subwords of a source beyond ``search.max_source_tokens`` are left out."""
        limit, tokenizers = self.trained.experiment.search.max_source_tokens, self.trained.tokenizers
        source_pieces = [tokenizers.source.encode_spans(text) for text in sources]
        target_pieces = [tokenizers.target.encode_spans(text) for text in targets]
        request = AlignmentRequest(self.methods[0])
        source_ids, target_ids = [ids[:limit] for ids, _ in source_pieces], [ids for ids, _ in target_pieces]
        matrices = self.matrices([request], source_ids, target_ids, sources)[request]
        return [
            PieceWeights(weights_TS, tuple(target), tuple(source[:limit]))
            for weights_TS, (_, source), (_, target) in zip(matrices, source_pieces, target_pieces, strict=True)
        ]

    def matrices(
        self,
        requests: Sequence[AlignmentRequest],
        source_ids: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        texts: Sequence[str],
    ) -> dict[AlignmentRequest, list[NDArray[np.float32]]]:
        """Computes the matrices weights_TS of pairs of token ids for each request but to a learnt aligner; the sources
        have their texts. The weights of what the model reads before a source are left out, and relative rows are
        rescaled to sum to 1."""
        from nmt.alignment.forced import forced_weights

        sources = self.trained.prefixed(source_ids, texts)
        model, compute = self.trained.model, self.trained.compute
        batch_tokens = self.trained.experiment.search.batch_tokens
        matrices: dict[AlignmentRequest, list[NDArray[np.float32]]] = {}
        for method in BY_ATTENTION:
            if chosen := [request for request in requests if request.method == method]:
                heads, shifted = [each.heads or self.extraction.heads for each in chosen], method == "shifted-attention"
                weights = forced_weights(
                    model, sources, targets, compute, batch_tokens=batch_tokens, heads=heads, shifted=shifted
                )
                matrices |= {request: [of_pair[index] for of_pair in weights] for index, request in enumerate(chosen)}
        if by_gradient := [request for request in requests if request.method in get_args(GradientMethod)]:
            from nmt.alignment.gradient import gradient_weights

            pairs = gradient_weights(model, sources, targets, compute, requests=by_gradient, batch_tokens=batch_tokens)
            matrices |= {request: [of_pair[index] for of_pair in pairs] for index, request in enumerate(by_gradient)}
        prefixes = [len(source) - len(ids) for source, ids in zip(sources, source_ids, strict=True)]
        return {
            request: [
                without_prefix(each_TS, prefix, request.magnitude) for each_TS, prefix in zip(of, prefixes, strict=True)
            ]
            for request, of in matrices.items()
        }

    def _learnt_aligner(self, method: str) -> LearntAligner:
        if method not in self._learnt:
            self._learnt[method] = plugins.find("methods", method, f"--method {method}", METHODS)(self.trained)
        return self._learnt[method]

    def _alignment(
        self,
        source: EncodedWords,
        target: EncodedWords,
        weights: tuple[np.ndarray, np.ndarray] | None,
        level: Level,
        magnitude: Magnitude,
        *,
        text: bool,
    ) -> Alignment:
        """Builds an alignment from the weights between pieces, and from the relative weights, which give the links."""
        from nmt.alignment.formats import Alignment

        tokenizers = self.trained.tokenizers
        source_tokens = tuple(tokenizers.source.pieces([*source.ids, EOS]))
        target_tokens = tuple(tokenizers.target.pieces([*target.ids, EOS]))
        links: Links = ()
        if weights is None:  # one side has no subwords
            share = float(magnitude == "relative")
            words_IJ = np.full((len(target.words), len(source.words)), share / max(len(source.words), 1))
            pieces_TS = np.full((len(target_tokens), len(source_tokens)), share / len(source_tokens))
        else:
            pieces_TS = weights[0].astype(np.float64)
            words_IJ = relative_IJ = word_weights(pieces_TS, source, target, text=text, magnitude=magnitude)
            if magnitude != "relative":
                relative_IJ = word_weights(weights[1], source, target, text=text)
            links = self.extraction.links(relative_IJ)
        at_words = Alignment(
            source.words,
            target.words,
            links,
            words_IJ,
            source_spans=source.word_spans,
            target_spans=target.word_spans,
            magnitude=magnitude,
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


def without_prefix(weights_TS: NDArray[np.float32], prefix: int, magnitude: Magnitude) -> NDArray[np.float32]:
    """Removes the first ``prefix`` columns of weights. Relative rows are rescaled to sum to 1; a row with all its
    weight in these columns becomes uniform."""
    weights_TS = weights_TS[:, prefix:]
    if magnitude != "relative" or prefix == 0:
        return weights_TS
    total_T1 = weights_TS.sum(axis=1, keepdims=True)
    uniform_TS = np.full_like(weights_TS, 1 / weights_TS.shape[1])
    rescaled_TS: NDArray[np.float32] = np.divide(weights_TS, total_T1, out=uniform_TS, where=total_T1 > 0)
    return rescaled_TS


def word_weights(
    weights_TS: np.ndarray, source: EncodedWords, target: EncodedWords, *, text: bool, magnitude: Magnitude = "relative"
) -> NDArray[np.float64]:
    """Computes the weights between words, (I, J), from those between pieces; with ``text`` a piece may be part of
    several words."""
    from nmt.alignment.words import NO_WORD, parts, to_words, to_words_of_parts, word_indices

    if text:
        return to_words_of_parts(weights_TS, parts(target), parts(source), magnitude=magnitude)
    indices = [*word_indices(target), NO_WORD], [*word_indices(source), NO_WORD]  # the last is end-of-sentence
    return to_words(weights_TS, *indices, len(target.words), len(source.words), magnitude=magnitude)
