"""Processing of corpora to subword models, stores of train and valid, and a report, in bounded memory: training pairs
are read twice, first for filters and subwords, then to be tokenised."""

from __future__ import annotations

import contextlib
import functools
import itertools
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from nmt.alignment.formats import parse_pharaoh
from nmt.core import log
from nmt.core.cpu import core_count
from nmt.core.errors import InputError
from nmt.data.config import MANY_IDENTICAL, CorpusConfig, DataConfig, TrainingCorpusConfig
from nmt.data.context import BREAK, DocumentContext, context_tokens
from nmt.data.corpus import Faulty, PairBlock, read_blocks, read_linked_blocks
from nmt.data.filters import DROPPED, TextFilter, Verdict, length_verdicts, letters, mark_duplicates, pair_hash
from nmt.data.report import Report, ValidReport
from nmt.data.sides import doubts
from nmt.data.store import WORDS, Ragged, StoredCorpus, Text
from nmt.data.store_writer import StoreWriter
from nmt.data.tally import CorpusTally, LineCounter, LineTally, SideTally
from nmt.data.temperature import tempered_weights
from nmt.data.tokenizer import Tokenizer, TokenizerPair, load_tokenizers
from nmt.data.train_tokenizers import NOTABLE_CHANGES, changed_by_normalization, train_tokenizers

_AHEAD = 3
"""Number of blocks for each core of a cluster that are tokenised before the first of them is written."""

_PROBE = 5000
"""Number of pairs of a corpus that are examined for suspicious properties."""

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")


class BlockRunner(Protocol):
    """Calls a function for many blocks, on one or many machines, as ``nmt prepare --ray`` does."""

    @property
    def cores(self) -> int: ...

    def ordered(self, function: Callable[[S, T], R], shared: S, arguments: Iterable[T], *, ahead: int) -> Iterator[R]:
        """Yields the results of calls with ``shared`` and each argument, in order; at most ``ahead`` calls are started
        before the first result is taken."""


OpenRunner: TypeAlias = Callable[[], AbstractContextManager[BlockRunner]]


def in_order(start: Callable[[T], R], arguments: Iterable[T], ahead: int) -> Iterator[R]:
    """Yields what ``start`` returns for each argument, in order, after it has been called for ``ahead`` more."""
    waiting: deque[R] = deque()
    for argument in arguments:
        waiting.append(start(argument))
        if len(waiting) > ahead:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


class PairSample:
    """A bounded sample of a stream: the `limit` different pairs with the smallest hashes, which are a uniform sample
    without replacement of all different pairs.

    It depends only on the pairs and on the hash's seed: not on their order, nor on how often each one occurs (bottom-k
    sampling: Cohen and Kaplan 2007, "Summarizing data using bottom-k sketches"). Memory holds at most twice `limit`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pairs: dict[int, tuple[str, str]] = {}
        self._below = 1 << 64

    def offer(self, hashes: npt.NDArray[np.uint64], sources: list[str], targets: list[str]) -> None:
        """Adds pairs with their hashes."""
        rows = range(len(hashes)) if self._below >> 64 else np.flatnonzero(hashes < np.uint64(self._below)).tolist()
        for index in rows:
            self._pairs.setdefault(int(hashes[index]), (sources[index], targets[index]))
        if len(self._pairs) >= 2 * self._limit:
            self._shrink()

    def pairs(self) -> list[tuple[str, str]]:
        """Returns the sample, in the order of the hashes."""
        self._shrink()
        return [self._pairs[key] for key in sorted(self._pairs)]

    def _shrink(self) -> None:
        if len(self._pairs) > self._limit:
            self._below = sorted(self._pairs)[self._limit]
            self._pairs = {key: pair for key, pair in self._pairs.items() if key < self._below}


def sample_pairs(corpus: CorpusConfig, limit: int, *, seed: int) -> list[tuple[str, str]]:
    """Draws a `PairSample` of a corpus."""
    sample = PairSample(limit)
    for block in read_blocks(corpus):
        hashes = b"".join(map(lambda s, t: pair_hash(s, t, seed=seed), block.sources, block.targets))
        sample.offer(np.frombuffer(hashes, np.uint64), block.sources, block.targets)
    return sample.pairs()


def build(config: DataConfig, seed: int, partial: Path, tokenise: _Tokenise) -> Report:
    """Fills the folder, except for report and state."""
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=partial) as name:
        scratch = Path(name)
        sample = _survey(config, seed, scratch)
        if config.subwords.model is None:
            log.info(f"learning {config.subwords.kind} subwords from {len(sample):,} pairs")
            tokenizers = train_tokenizers(sample, config.subwords)
        else:
            log.info(f"taking the subwords of {config.subwords.model}")
            tokenizers = load_tokenizers(config.subwords.model, config.subwords)
        tokenizers = tokenizers.with_controls(config.control_pieces)
        del sample
        if config.filters.duplicates:
            mark_duplicates(scratch / "verdicts.bin", scratch / "hashes.bin", scratch)
            mark_duplicates(scratch / "verdicts.bin", scratch / "near.bin", scratch, verdict=Verdict.NEAR_DUPLICATE)
        tokenizers.save(partial)
        encode = functools.partial(_with_tokens, tokenizers, tokenise)
        lines = LineTally(config.source_language)
        tallies, sides = _store_train(config, tokenizers, encode, scratch / "verdicts.bin", partial / "train", lines)
        valid = _store_valid(config, tokenizers, encode, partial / "valid") if config.valid_corpora else None
    report = Report(
        corpora=tuple(tally.report() for tally in tallies),
        valid=valid,
        source=sides[0].report(rare=tokenizers.rare[0]),
        target=sides[1].report(rare=tokenizers.rare[1]),
        several=lines.several / max(lines.lines, 1),
        letterless=lines.letterless / max(lines.lines, 1),
    )
    labels = [verdict.label for verdict in DROPPED]
    dropped = {label: sum(corpus.dropped[label].pairs for corpus in report.corpora) for label in labels}
    _refuse_empty(dropped, kept=report.kept)
    return report


def _survey(config: DataConfig, seed: int, scratch: Path) -> list[tuple[str, str]]:
    """Reads all pairs once, writes the verdict of the text filters and the hash of every pair to files, and returns the
    pairs to learn subwords from."""
    counts = np.zeros(len(Verdict), np.int64)
    text_filter = TextFilter(config.filters, _held_out(config))
    sample = PairSample(config.subwords.training_sentences if config.subwords.model is None else 0)
    with (
        (scratch / "verdicts.bin").open("wb") as verdict_file,
        (scratch / "hashes.bin").open("wb") as hash_file,
        (scratch / "near.bin").open("wb") as near_file,
    ):
        for corpus in config.train_corpora:
            probe = PairSample(_PROBE)
            mark = "" if corpus.languages is None else f"\n{'-'.join(corpus.languages)}"  # keeps directions apart
            for block in _progress(corpus, "reading", config.faulty):
                _links(corpus, block, range(len(block.sources)))  # all of it, to find faults before the work
                sources = [source.strip() for source in block.sources]
                targets = [target.strip() for target in block.targets]
                verdicts = bytearray(map(text_filter, sources, targets))
                for row in block.faulty:
                    verdicts[row] = Verdict.NO_PAIR
                marked = [f"{target}{mark}" for target in targets] if mark else targets
                hashes = b"".join(map(lambda s, t: pair_hash(s, t, seed=seed), sources, marked))
                verdict_file.write(verdicts)
                hash_file.write(hashes)
                if config.filters.duplicates:
                    pairs = zip(map(letters, sources), map(letters, targets), strict=True)
                    near = (pair_hash(source, f"{target}{mark}", seed=seed) for source, target in pairs)
                    near_file.write(b"".join(near))
                counts += np.bincount(np.frombuffer(verdicts, np.uint8), minlength=len(Verdict))
                kept = np.frombuffer(verdicts, np.uint8) == Verdict.KEPT
                rows = np.flatnonzero(kept).tolist()
                texts = [sources[row] for row in rows], [targets[row] for row in rows]
                sample.offer(np.frombuffer(hashes, "<u8")[kept], *texts)
                probe.offer(np.frombuffer(hashes, "<u8")[kept], *texts)
            for doubt in doubts(probe.pairs()):
                log.warning(f"{corpus.name}: {doubt}")
            if config.subwords.model is None:
                targets = [target for _, target in probe.pairs()]
                share, change = changed_by_normalization(targets, config.subwords.normalization)
                if share >= NOTABLE_CHANGES:
                    log.warning(
                        f"{corpus.name}: {share:.1%} of its targets are changed by data.subwords.normalization "
                        f"({change}), and the model will write them so; nfc keeps them"
                    )
    _refuse_empty({verdict.label: int(counts[verdict]) for verdict in DROPPED}, kept=int(counts[Verdict.KEPT]))
    if (same := counts[Verdict.IDENTICAL] / counts.sum()) > MANY_IDENTICAL:
        log.warning(f"data.filters.identical drops {same:.1%} of the pairs, whose sides are the same; false keeps them")
    return sample.pairs()


def _held_out(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Reads the pairs of valid and test; for a model of several languages, which may learn the other direction, also
    with the sides exchanged."""
    for corpus in (*config.valid_corpora, *config.test_corpora):
        for block in read_blocks(corpus, faulty=config.faulty):
            yield from zip(block.sources, block.targets, strict=True)
            if corpus.languages is not None:
                yield from zip(block.targets, block.sources, strict=True)


class _Encoded(NamedTuple):
    """Pairs as tokens, with the number of words on each side."""

    sources: Ragged
    targets: Ragged
    contexts: Ragged
    source_words: npt.NDArray[np.int64]
    target_words: npt.NDArray[np.int64]
    words: tuple[Ragged, Ragged] | None
    """The word of each source and each target token; None if not needed."""


class _Texts(NamedTuple):
    """The sides of consecutive pairs."""

    sources: list[str]
    targets: list[str]
    wants_words: bool
    context: int
    max_length: int


_Tokenise: TypeAlias = Callable[[TokenizerPair, Iterator[_Texts]], Iterator[_Encoded]]
"""Function that tokenises texts in order, a bounded number of blocks ahead."""


@contextlib.contextmanager
def tokenising(config: DataConfig, cluster: OpenRunner | None) -> Iterator[_Tokenise]:
    """Context manager of a function that tokenises in threads, or on a cluster."""
    if cluster is None:
        threads = config.workers or core_count()
        with ThreadPoolExecutor(threads) as executor:
            try:
                yield functools.partial(_in_threads, executor, threads + 1)
            except BaseException:
                executor.shutdown(cancel_futures=True)
                raise
    else:
        with cluster() as runner:
            yield functools.partial(_on_cluster, runner)


def _in_threads(
    executor: ThreadPoolExecutor, ahead: int, tokenizers: TokenizerPair, blocks: Iterator[_Texts]
) -> Iterator[_Encoded]:
    """Tokenises in threads, because SentencePiece runs outside Python's lock."""
    futures = in_order(lambda block: executor.submit(_encode, tokenizers, block), blocks, ahead)
    return (future.result() for future in futures)


def _on_cluster(runner: BlockRunner, tokenizers: TokenizerPair, blocks: Iterator[_Texts]) -> Iterator[_Encoded]:
    models = tuple(dict.fromkeys((tokenizers.source.model, tokenizers.target.model)))
    return runner.ordered(_encode_with, models, blocks, ahead=_AHEAD * max(runner.cores, 1))


def _encode_with(models: tuple[bytes, ...], block: _Texts) -> _Encoded:
    return _encode(_tokenizers(models), block)


@functools.lru_cache(maxsize=1)
def _tokenizers(models: tuple[bytes, ...]) -> TokenizerPair:
    """Loads the subword models, once in each process, which gets many blocks."""
    source, target = Tokenizer(models[0]), Tokenizer(models[-1])
    return TokenizerPair(source, source if len(models) == 1 else target)


def _encode(tokenizers: TokenizerPair, block: _Texts) -> _Encoded:
    counts, words = (_count_words(block.sources), _count_words(block.targets)), None
    if block.wants_words:
        sources, source_words = _with_words(tokenizers.source, block.sources)
        targets, target_words = _with_words(tokenizers.target, block.targets)
        words = (source_words, target_words)
    else:
        sources = Ragged.of(tokenizers.source.encode_arrays(block.sources))
        targets = Ragged.of(tokenizers.target.encode_arrays(block.targets))
    return _Encoded(sources, targets, _contexts(tokenizers.source, block, sources), *counts, words)


def _contexts(tokenizer: Tokenizer, block: _Texts, sources: Ragged) -> Ragged:
    """Returns the tokens of the sentences before each source, as many as keep it within `max_length`."""
    if block.context == 0:
        return Ragged.blank(len(block.sources))
    encode, end = functools.cache(tokenizer.encode), tokenizer.control(BREAK)
    texts = zip(block.sources, (block.max_length - sources.lengths).tolist(), strict=True)
    rows = (context_tokens(text, encode, end, number=block.context, room=room) for text, room in texts)
    return Ragged.of([np.array(row, np.int32) for row in rows])


def _with_words(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Ragged, Ragged]:
    """Splits texts into tokens, and finds the word of each token."""
    encoded = [tokenizer.encode_words(text) for text in texts]
    ids = Ragged.of([np.array(each.ids, np.int32) for each in encoded])
    return ids, Ragged.of([np.array(each.word_of_piece, np.int32) for each in encoded])


class _Rows(NamedTuple):
    """The pairs of a block that have passed the filters so far. `verdicts`, `near` and `first_line` are those of the
    whole block."""

    first_line: int
    verdicts: npt.NDArray[np.uint8]
    texts: _Texts
    near: npt.NDArray[np.bool_]
    """Mask of the near-duplicates that pass."""
    links: Ragged | None = None
    """Two numbers for each link; None means that the corpus has no links."""


_Encode: TypeAlias = Callable[[Iterable[_Rows]], Iterator[tuple[_Rows, _Encoded]]]


def _with_tokens(
    tokenizers: TokenizerPair, tokenise: _Tokenise, blocks: Iterable[_Rows]
) -> Iterator[tuple[_Rows, _Encoded]]:
    """Joins every block with its tokens, in order."""
    blocks, ahead = itertools.tee(blocks)
    return zip(blocks, tokenise(tokenizers, (block.texts for block in ahead)), strict=True)


def _links(corpus: TrainingCorpusConfig, block: PairBlock, rows: Sequence[int]) -> Ragged | None:
    """Parses the links of some pairs of a block. Raises InputError for an invalid link, or a link to a word that does
    not exist."""
    if block.links is None:
        return None
    found: list[npt.NDArray[np.int64]] = []
    for row in rows:
        place = f"{corpus.links}:{block.first_line + row}"
        source_length, target_length = len(block.sources[row].split()), len(block.targets[row].split())
        links = parse_pharaoh(block.links[row], place=place, lengths=(source_length, target_length))
        found.append(np.array(links, np.int64).reshape(-1))
        if found[-1].max(initial=0) >= WORDS:
            raise InputError(
                f"{place}: a link points at word {found[-1].max()}, but only the first {WORDS} of a sentence can have "
                "links: leave it out"
            )
    return Ragged.of(found)


def _store_train(
    config: DataConfig, tokenizers: TokenizerPair, encode: _Encode, verdicts: Path, folder: Path, lines: LineTally
) -> tuple[list[CorpusTally], tuple[SideTally, SideTally]]:
    """Reads all pairs again and writes those that pass. `verdicts` is the file of the survey."""
    corpora = config.train_corpora
    keep_text, keep_links = config.subwords.sampling > 0, any(corpus.links is not None for corpus in corpora)
    tallies = [CorpusTally(corpus.name, corpus.weight) for corpus in corpora]
    sides = (SideTally(tokenizers.source.size), SideTally(tokenizers.target.size))
    stored = [_stored(corpus, corpus.weight, tokenizers) for corpus in corpora]
    with (
        _store(config, tokenizers, folder, stored, keep_text=keep_text, keep_links=keep_links) as writer,
        verdicts.open("rb") as verdict_file,
    ):
        for number, corpus in enumerate(corpora):

            def passed(block: PairBlock, corpus: TrainingCorpusConfig = corpus) -> _Rows:
                verdicts = np.frombuffer(verdict_file.read(len(block.sources)), np.uint8).copy()
                if len(verdicts) != len(block.sources):
                    raise InputError(f"{corpus.name}: changed while it was read; run `nmt prepare` again")
                near = (verdicts == Verdict.NEAR_DUPLICATE) & (not config.filters.near_duplicates)
                verdicts[near] = Verdict.KEPT
                rows = np.flatnonzero(verdicts == Verdict.KEPT).tolist()
                links = _links(corpus, block, rows)
                wants_words = links is not None and writer.keep_words
                return _Rows(block.first_line, verdicts, _texts(config, block, rows, wants_words), near, links)

            blocks = _in_document(config, _progress(corpus, "tokenising", config.faulty))
            for block, encoded in encode(map(passed, blocks)):
                by_length = length_verdicts(encoded.sources.lengths, encoded.targets.lengths, config.filters)
                block.verdicts[block.verdicts == Verdict.KEPT] = by_length
                kept = by_length == Verdict.KEPT
                lines.add(list(itertools.compress(block.texts.sources, kept)))
                _append(writer, number, block, encoded, kept, sides)
                tallies[number].add(block.first_line, block.verdicts, block.near & (block.verdicts == Verdict.KEPT))
        if verdict_file.read(1):
            raise InputError(f"{corpora[-1].name}: changed while it was read; run `nmt prepare` again")
        weights = tempered_weights(corpora, [tally.kept for tally in tallies], config.temperature)
        for tally, weight in zip(tallies, weights, strict=True):
            tally.weight = weight
        writer.finish([replace(corpus, weight=weight) for corpus, weight in zip(stored, weights, strict=True)])
    return tallies, sides


def _store_valid(config: DataConfig, tokenizers: TokenizerPair, encode: _Encode, folder: Path) -> ValidReport:
    """Writes every pair of every corpus, so that scores are over the whole set."""
    corpora = config.valid_corpora
    sides = (SideTally(tokenizers.source.size), SideTally(tokenizers.target.size))
    pairs, blank, too_long = 0, LineCounter(), LineCounter()
    stored = [_stored(corpus, 1.0, tokenizers) for corpus in corpora]
    with _store(config, tokenizers, folder, stored, keep_text=True) as writer:
        for number, corpus in enumerate(corpora):
            blocks = (
                _Rows(block.first_line, no_row.view(np.uint8), _texts(config, block, range(len(no_row))), no_row)
                for block in _in_document(config, read_blocks(corpus))
                for no_row in (np.zeros(len(block.sources), np.bool_),)
            )
            for block, encoded in encode(blocks):
                _append(writer, number, block, encoded, ~block.near, sides)
                shorter = np.minimum(encoded.sources.lengths, encoded.targets.lengths)
                longer = np.maximum(encoded.sources.lengths, encoded.targets.lengths)
                blank.add(block.first_line + np.flatnonzero(shorter == 0))
                too_long.add(block.first_line + np.flatnonzero(longer > config.filters.max_length))
                pairs += len(shorter)
        writer.finish()
    return ValidReport(
        name=", ".join(corpus.name for corpus in corpora), pairs=pairs,
        blank=blank.report(), too_long=too_long.report(), unknown=(sides[0].unknown, sides[1].unknown),
    )  # fmt: skip


def _texts(config: DataConfig, block: PairBlock, rows: Sequence[int], wants_words: bool = False) -> _Texts:
    sources, targets = [block.sources[row] for row in rows], [block.targets[row] for row in rows]
    return _Texts(sources, targets, wants_words, config.context, config.filters.max_length)


def _stored(corpus: CorpusConfig, weight: float, tokenizers: TokenizerPair) -> StoredCorpus:
    prefix = () if corpus.languages is None else (tokenizers.source.languages[corpus.languages[1]],)
    return StoredCorpus(corpus.name, weight, prefix)


def _store(
    config: DataConfig, tokenizers: TokenizerPair, folder: Path, corpora: Sequence[StoredCorpus],
    *, keep_text: bool, keep_links: bool = False,
) -> StoreWriter:  # fmt: skip
    sizes = (tokenizers.source.size, tokenizers.target.size)
    return StoreWriter(
        folder, corpora=corpora, vocabulary_sizes=sizes, keep_text=keep_text, keep_links=keep_links,
        keep_context=config.context > 0,
    )  # fmt: skip


def _append(
    writer: StoreWriter, corpus: int, block: _Rows, encoded: _Encoded, kept: npt.NDArray[np.bool_],
    sides: tuple[SideTally, SideTally],
) -> None:  # fmt: skip
    """Writes the pairs of a block that the mask keeps, and counts their tokens."""
    sources, targets = encoded.sources.select(kept), encoded.targets.select(kept)
    texts = itertools.compress(map(Text, block.texts.sources, block.texts.targets), kept)
    writer.append(
        corpus=corpus, lines=block.first_line + np.flatnonzero(block.verdicts == Verdict.KEPT),
        sources=sources, targets=targets, texts=[*texts] if writer.keep_text else None,
        links=block.links and block.links.select(kept),
        words=encoded.words and (encoded.words[0].select(kept), encoded.words[1].select(kept)),
        contexts=encoded.contexts.select(kept),
    )  # fmt: skip
    sides[0].add(sources, int(encoded.source_words[kept].sum()))
    sides[1].add(targets, int(encoded.target_words[kept].sum()))


def _progress(corpus: TrainingCorpusConfig, description: str, faulty: Faulty) -> Iterator[PairBlock]:
    with log.progress(None, unit="pairs", description=description) as bar:
        for block in read_linked_blocks(corpus, faulty=faulty):
            yield block
            bar.update(len(block.sources))


def _in_document(config: DataConfig, blocks: Iterator[PairBlock]) -> Iterator[PairBlock]:
    """Yields the blocks of a corpus; for a model with context each source knows the lines before it."""
    document = DocumentContext()
    for block in blocks:
        yield replace(block, sources=[*document.sentences(block.sources)]) if config.context else block


def _count_words(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    return np.fromiter((len(text.split()) for text in texts), np.int64, len(texts))


def _refuse_empty(dropped: Mapping[str, int], *, kept: int) -> None:
    """Raises InputError, which names the filters that dropped the pairs, if no training pair is left."""
    if kept == 0:
        reasons = ", ".join(f"{count:,} {name}" for name, count in dropped.items() if count)
        pairs = sum(dropped.values())
        raise InputError(f"data.filters: none of {pairs:,} training pairs is left ({reasons}); relax the filters")
