"""Alignments of sentence pairs by one model, by every method that it has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from nmt import plugins
from nmt.alignment import METHODS, GradientMethod, Links, Magnitude, Weights
from nmt.alignment.extract import Extraction
from nmt.alignment.request import BY_ATTENTION, AlignmentRequest
from nmt.alignment.words import NO_WORD, normalize_rows, parts, to_words, to_words_of_parts, word_indices
from nmt.core.errors import InputError
from nmt.data.batching import TokenIds
from nmt.data.tokenizer import EncodedWords
from nmt.data.vocabulary import EOS
from nmt.data.words import Span
from nmt.plugins import AlignmentMethod
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
        self, sources: Sequence[EncodedWords], targets: Sequence[EncodedWords], attention: Mapping[int, Weights], *,
        share: float, first_line: int,
    ) -> list[Alignment]:  # fmt: skip
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
        run = self.trained.run
        by_attention = BY_ATTENTION if self.trained.experiment.model.head_names else ()
        learnt: Mapping[str, AlignmentMethod] = plugins.entries("methods")
        of_run = (name for name, method in learnt.items() if all((run / file).exists() for file in method.files))
        return (*by_attention, *get_args(GradientMethod), *of_run)

    def check_method(self, method: str) -> None:
        """Raises InputError for a method that the model or its precision does not admit."""
        if method in get_args(GradientMethod) and self.trained.compute.precision == "int8":
            raise InputError("--precision int8: has no gradients to align by; use float32 or bfloat16")
        if method not in METHODS:
            self._learnt_aligner(method)
        elif method not in self.methods:
            raise InputError(
                f"{self.trained.checkpoint}: has no attention (model.attention.score: none); use --method gradient"
            )

    def align(
        self, requests: Sequence[AlignmentRequest], sources: Sequence[str], targets: Sequence[str], *,
        level: Level = "word", first_line: int = 1, text: bool = False,
    ) -> dict[AlignmentRequest, list[Alignment]]:  # fmt: skip
        """Aligns each pair for each request. An alignment has links between white-space words, and the soft matrix
        between words or, at level ``subword``, between pieces. A pair with a blank side has no links and an empty
        matrix. With ``text`` the lines are ordinary text, which is divided into words; each punctuation mark is a word
        of its own (see ``nmt.data.words``).

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
        relative = {request: replace(request, magnitude="relative") for request in requests}  # for the links
        attention = AlignmentRequest("attention")  # which a learnt aligner joins to what it has learnt
        needed = [*requests, *relative.values(), *[attention] * bool(learnt and "attention" in self.methods)]
        source_ids, target_ids = ([pairs[row][side].ids for row in rows] for side in (0, 1))
        matrices = self.matrices(dict.fromkeys(needed), source_ids, target_ids, [sources[row] for row in rows])
        weights = {request: dict(zip(rows, of_pairs, strict=True)) for request, of_pairs in matrices.items()}
        alignments: dict[AlignmentRequest, list[Alignment]] = {}
        for request in requests:
            if request.method in learnt:
                by_attention = weights.get(attention, {})
                alignments[request] = self._learnt_aligner(request.method).align(
                    [source for source, _ in pairs],
                    [target for _, target in pairs],
                    {row: word_weights(by_attention[row], *pairs[row], text=text) for row in by_attention},
                    share=self.extraction.aligner_share,
                    first_line=first_line,
                )
            else:
                own, for_links = weights[request], weights[relative[request]]
                alignments[request] = [
                    self._alignment(*pair, own.get(row), for_links.get(row), level, request.magnitude, text=text)
                    for row, pair in enumerate(pairs)
                ]
        return alignments

    def piece_weights(self, sources: Sequence[str], targets: Sequence[str]) -> list[PieceWeights]:
        """Computes the soft alignment of each pair between subwords: by attention, or by gradients if the model has no
        attention. Subwords of a source beyond ``search.max_source_tokens`` are left out."""
        limit, tokenizers = self.trained.experiment.search.max_source_tokens, self.trained.tokenizers
        source_pieces = [tokenizers.source.encode_spans(text) for text in sources]
        target_pieces = [tokenizers.target.encode_spans(text) for text in targets]
        source_ids, target_ids = [ids[:limit] for ids, _ in source_pieces], [ids for ids, _ in target_pieces]
        request = AlignmentRequest(self.methods[0])
        (matrices,) = self.matrices([request], source_ids, target_ids, sources).values()
        return [
            PieceWeights(weights_TS, tuple(target), tuple(source[:limit]))
            for weights_TS, (_, source), (_, target) in zip(matrices, source_pieces, target_pieces, strict=True)
        ]

    def matrices(
        self, requests: Collection[AlignmentRequest], source_ids: TokenIds, targets: TokenIds, texts: Sequence[str]
    ) -> dict[AlignmentRequest, list[NDArray[np.float32]]]:
        """Computes the matrices weights_TS of pairs of token ids for each request but to a learnt aligner; the sources
        have their texts. The weights of what the model reads before a source are left out, and relative rows are
        rescaled to sum to 1."""
        from nmt.alignment.forced import forced_weights

        sources = self.trained.prefixed(source_ids, texts)
        given = (self.trained.model, sources, targets, self.trained.compute)
        batch_tokens = self.trained.experiment.search.batch_tokens
        groups = []
        for method in BY_ATTENTION:
            if group := [request for request in requests if request.method == method]:
                heads, shifted = [request.heads or self.extraction.heads for request in group], method != "attention"
                pairs = forced_weights(*given, batch_tokens=batch_tokens, heads=heads, shifted=shifted)
                groups.append((group, pairs))
        if group := [request for request in requests if request.method in get_args(GradientMethod)]:
            from nmt.alignment.gradient import gradient_weights

            groups.append((group, gradient_weights(*given, requests=group, batch_tokens=batch_tokens)))
        prefixes = [len(source) - len(ids) for source, ids in zip(sources, source_ids, strict=True)]
        return {
            request: [
                without_prefix(matrices[index], prefix, request.magnitude)
                for matrices, prefix in zip(pairs, prefixes, strict=True)
            ]
            for group, pairs in groups
            for index, request in enumerate(group)
        }

    def _learnt_aligner(self, method: str) -> LearntAligner:
        if method not in self._learnt:
            self._learnt[method] = plugins.find("methods", method, f"--method {method}", METHODS)(self.trained)
        return self._learnt[method]

    def _alignment(
        self, source: EncodedWords, target: EncodedWords, pieces_TS: NDArray[np.float32] | None,
        relative_TS: NDArray[np.float32] | None, level: Level, magnitude: Magnitude, *, text: bool,
    ) -> Alignment:  # fmt: skip
        """Builds an alignment from the weights between pieces and, for its links, the relative weights. Both are None
        if one side has no subwords."""
        from nmt.alignment.formats import Alignment

        links: Links = ()
        weights_TS: Weights
        if pieces_TS is None or relative_TS is None:
            share, tokens = float(magnitude == "relative"), len(source.ids) + 1
            words_IJ = np.full((len(target.words), len(source.words)), share / max(len(source.words), 1))
            weights_TS = np.full((len(target.ids) + 1, tokens), share / tokens)
        else:
            weights_TS = pieces_TS.astype(np.float64)
            words_IJ = relative_IJ = word_weights(weights_TS, source, target, text=text, magnitude=magnitude)
            if magnitude != "relative":
                relative_IJ = word_weights(relative_TS, source, target, text=text)
            links = self.extraction.links(relative_IJ)
        here, there = source.word_spans, target.word_spans
        alignment = Alignment(
            source.words, target.words, links, words_IJ, source_spans=here, target_spans=there, magnitude=magnitude
        )
        if level == "word":
            return alignment
        return replace(
            alignment,
            weights_TS=weights_TS,
            level=level,
            source_tokens=tuple(self.trained.tokenizers.source.pieces([*source.ids, EOS])),
            target_tokens=tuple(self.trained.tokenizers.target.pieces([*target.ids, EOS])),
            scores=tuple(float(words_IJ[column, row]) for row, column in links),
        )


def without_prefix(weights_TS: NDArray[np.float32], prefix: int, magnitude: Magnitude) -> NDArray[np.float32]:
    """Removes the first ``prefix`` columns of weights. Relative rows are rescaled to sum to 1; a row with all its
    weight in these columns becomes uniform."""
    weights_TS = weights_TS[:, prefix:]
    return normalize_rows(weights_TS) if prefix > 0 and magnitude == "relative" else weights_TS


def word_weights(
    weights_TS: np.ndarray, source: EncodedWords, target: EncodedWords, *, text: bool, magnitude: Magnitude = "relative"
) -> NDArray[np.float64]:
    """Computes the weights between words, (I, J), from those between pieces; with ``text`` a piece may be part of
    several words."""
    if text:
        return to_words_of_parts(weights_TS, parts(target), parts(source), magnitude=magnitude)
    indices = [*word_indices(target), NO_WORD], [*word_indices(source), NO_WORD]  # the last is end-of-sentence
    return to_words(weights_TS, *indices, len(target.words), len(source.words), magnitude=magnitude)
