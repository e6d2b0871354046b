"""Translation by CTranslate2, of a model that ``nmt.extras.exchange.export.ctranslate2`` has written. This module does
not import torch, so that the first translation comes sooner."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nmt.core import log
from nmt.core.cpu import thread_count
from nmt.core.errors import InputError
from nmt.core.files import content_hash, read_json, refuse_special
from nmt.core.installation import missing
from nmt.core.memory import keep_freed_memory
from nmt.data.batching import TokenIds, length_batches
from nmt.data.tokenizer import TokenizerPair
from nmt.data.vocabulary import EOS, PAD
from nmt.search.config import SearchConfig
from nmt.search.hypothesis import Constraint, Hypothesis
from nmt.search.scoring import max_lengths, ranking_of
from nmt.training import run_directory
from nmt.translator.find_run import EXPORTED, run_of
from nmt.translator.loading import TrainedModel

ABOUT = "nmt.json"
"""File that describes an export, in its folder."""

BATCH_TOKENS = 1024
"""Maximum number of source tokens of a batch on a CPU, without end-of-sentence; multiplied by the number of beams it is
at most ``search.batch_tokens``. Larger batches are slower on a CPU."""

_OWN_SEARCH = ("sampling", "consensus", "groups", "coverage_penalty", "repetition_margin")
"""Search keys that CTranslate2 does not support."""


class CTranslate2Engine:
    """Translates with CTranslate2. Its search finds, by its own rules, as many hypotheses as there are beams;
    ``search.length_penalty`` then ranks them as in nmt's search. With ``length_normalization: average`` the penalty
    applies during the search, too; the search itself always uses an average. A hypothesis that reaches the limit of
    length has no end-of-sentence: its log-probability is that of its subwords only."""

    def __init__(self, folder: Path, tokenizers: TokenizerPair, *, device: str, precision: str, workers: int) -> None:
        """``workers`` batches are translated at once, each by one thread. Raises InputError for a folder that holds no
        model and for a device or precision that CTranslate2 does not have."""
        ctranslate2 = required()
        if (parts := re.fullmatch(r"(auto|cpu|cuda)(?::(\d+))?", device)) is None:
            raise InputError(f"--device {device}: is none of auto, cpu, cuda, cuda:N")
        try:
            place = {"device": parts[1], "device_index": int(parts[2] or 0)}
            translator = self._translator = ctranslate2.Translator(
                str(folder), **place, compute_type=precision, inter_threads=workers, intra_threads=1
            )
        except (RuntimeError, ValueError) as error:
            options, reason = f"--device {device} and --precision {precision}", " ".join(str(error).split())
            raise InputError(f"{folder}: CTranslate2 cannot load it with {options}: {reason}") from None
        log.info(f"engine: CTranslate2 {ctranslate2.__version__}, {translator.device}, {translator.compute_type}")
        self._source_pieces = tokenizers.source.pieces(range(tokenizers.source.size))
        self._target_pieces = tokenizers.target.pieces(range(tokenizers.target.size))
        self._target_ids = {piece: token for token, piece in enumerate(self._target_pieces)}
        self._end = [self._target_pieces[EOS]]

    def translate_ids(
        self, sources: TokenIds, config: SearchConfig, *, prefixes: TokenIds | None = None,
        constraints: Sequence[Sequence[Constraint]] | None = None, scored: bool = True,
    ) -> list[tuple[Hypothesis, ...]]:  # fmt: skip
        """See ``Engine``. Raises InputError for constraints."""
        if constraints is not None:
            raise InputError("--constraints: --engine ctranslate2 knows none; use --engine nmt")
        check_search(config)
        scored = scored or config.beam > 1  # hypotheses of beams are ranked by scores
        tokens = max(config.batch_tokens // config.beam, 1)
        if self._translator.device == "cpu":
            tokens = min(tokens, BATCH_TOKENS)
        batches = length_batches([len(source) for source in sources], tokens)  # as CTranslate2 counts them
        prefix_pieces = [[self._target_pieces[token] for token in prefix] for prefix in prefixes or [[]] * len(sources)]
        lengths = np.array([len(source) + 1 for source in sources], np.int64)
        longest = max_lengths(lengths, config.max_length_ratio, config.max_length).tolist()
        # without end-of-sentence, which counts in nmt's limits
        limits = [limit - 1 + len(prefix) for limit, prefix in zip(longest, prefix_pieces, strict=True)]
        waiting: deque[tuple[int, Any]] = deque()

        def start(rows: Sequence[int]) -> None:
            """Starts the translations of a batch."""
            batch_prefixes = [prefix_pieces[row] for row in rows]
            started: list[Any] = self._translator.translate_batch(
                [[self._source_pieces[token] for token in sources[row]] for row in rows],
                target_prefix=batch_prefixes if any(batch_prefixes) else None,
                asynchronous=True,
                beam_size=config.beam,
                num_hypotheses=config.beam,
                length_penalty=_exponent(config),
                no_repeat_ngram_size=config.no_repeat,
                suppress_sequences=[[self._target_pieces[PAD]]] if config.suppress_padding else None,
                min_decoding_length=max(config.min_length, 1),
                max_decoding_length=max(limits[row] for row in rows),
                max_input_length=0,
                return_scores=scored,
                return_end_token=True,
            )
            waiting.extend(zip(rows, started, strict=True))

        for rows in batches:
            start(rows)
        hypotheses: dict[int, tuple[Hypothesis, ...]] = {}
        retried: set[int] = set()
        while waiting:  # the first batches are read while the others are translated
            row, pending = waiting.popleft()
            result = pending.result()
            if not scored:
                (pieces,) = result.hypotheses
                length = min(self._length(pieces), limits[row])
                hypotheses[row] = (Hypothesis(self._tokens(pieces[:length]), math.nan, math.nan),)
            elif row not in retried and max(map(self._length, result.hypotheses)) > limits[row]:
                retried.add(row)
                # a batch has one limit of length, so the few over their own limit are translated again, one by one
                start([row])
            else:
                hypotheses[row] = self._best(result, config.with_given_words() if prefix_pieces[row] else config)
        return [hypotheses[row] for row in range(len(sources))]

    def _best(self, result: Any, config: SearchConfig) -> tuple[Hypothesis, ...]:
        """Selects the ``n_best`` hypotheses by nmt's ranking."""
        ranking, exponent = ranking_of(config), _exponent(config)
        ranked = []
        for pieces, score in zip(result.hypotheses, result.scores, strict=True):
            log_prob, tokens = score * len(pieces) ** exponent, self._tokens(pieces[: self._length(pieces)])
            ranked.append(Hypothesis(tokens, log_prob, ranking.score(log_prob, len(pieces))))
        ranked.sort(key=lambda hypothesis: -hypothesis.score)
        return tuple(ranked[: config.n_best])

    def _tokens(self, pieces: Sequence[str]) -> tuple[int, ...]:
        ids = self._target_ids
        return tuple([ids[piece] for piece in pieces])

    def _length(self, pieces: Sequence[str]) -> int:
        """Returns the length without end-of-sentence, which a hypothesis at the limit of length does not have."""
        return len(pieces) - (pieces[-1:] == self._end)


def check_search(config: SearchConfig) -> None:
    """Raises InputError for a search that CTranslate2 does not support."""
    for key in _OWN_SEARCH:
        if getattr(config, key) not in (None, SearchConfig.model_fields[key].default):
            raise InputError(f"search.{key}: --engine ctranslate2 does not have it; use --engine nmt")


def _exponent(config: SearchConfig) -> float:
    """Returns the power of the length by which CTranslate2's search divides log-probabilities."""
    return config.penalty if config.length_normalization == "average" else 1.0


def required() -> Any:
    """Imports the package. Raises InputError if it is not installed, or is older than 4.8.1: in older versions a
    damaged model overflows the heap when it is loaded."""
    try:
        import ctranslate2
    except ImportError:
        raise missing("CTranslate2 is", "ctranslate2") from None
    if tuple(map(int, re.findall(r"\d+", ctranslate2.__version__)[:3])) < (4, 8, 1):
        raise missing(f"CTranslate2 {ctranslate2.__version__} is too old, 4.8.1 or newer is", "ctranslate2")
    return ctranslate2


def export_folder(trained: TrainedModel, to: str) -> Path:
    """Returns the default folder of a model's export."""
    run = run_of(trained.checkpoint)
    folder = run / EXPORTED / to
    if not folder.resolve().is_relative_to(run):
        raise InputError(f"{folder}: leads out of {run}; remove the link, or name a folder with --output")
    return folder


def exported_engine(trained: TrainedModel, device: str, precision: str) -> CTranslate2Engine:
    """The engine of an exported model. Raises InputError where ``exported_files`` does, and for a search that
    CTranslate2 does not support."""
    required()
    folder = exported_files(trained)
    check_search(trained.experiment.search)
    keep_freed_memory()
    return CTranslate2Engine(folder, trained.tokenizers, device=device, precision=precision, workers=thread_count())


def exported_files(trained: TrainedModel) -> Path:
    """The folder of a model's export for CTranslate2. Raises InputError where this checkpoint is not the one that was
    exported, and for files that are not as they were written."""
    folder, name = export_folder(trained, "ctranslate2"), trained.checkpoint.resolve().name
    remedy = f"nmt export {trained.checkpoint}"
    about = exported_about(folder, remedy=remedy)
    found = about.get("checkpoint"), about.get("vocabulary")
    if found != (name, trained.tokenizers.fingerprint):
        raise InputError(f"{folder}: was made of {about.get('checkpoint')}, not of {name}; make it anew with: {remedy}")
    weights = weights_hash(trained)
    if about.get("weights", weights) != weights:  # an export of an older version does not have it
        raise InputError(f"{folder}: was made of other weights than {name} has now; make it anew with: {remedy}")
    for file, checksum in about.get("files", {}).items():  # an export of an older version does not have it
        refuse_special(folder / file)
        if not (folder / file).exists() or content_hash(folder / file).hex() != checksum:
            raise InputError(f"{folder / file}: damaged or missing; make it anew with: {remedy}")
    return folder


def exported_about(folder: Path, *, remedy: str) -> dict[str, Any]:
    """Reads the description of an export. Raises InputError, with a command as ``remedy``, if it is missing or
    damaged."""
    try:
        about = read_json(folder / ABOUT)
        if not isinstance(about, dict) or not isinstance(about.get("files", {}), dict):
            raise ValueError("no object")
    except FileNotFoundError:
        raise InputError(f"{folder}: is not there; make it with: {remedy}") from None
    except (OSError, ValueError):
        raise InputError(f"{folder / ABOUT}: is damaged; make it anew with: {remedy}") from None
    return about


def weights_hash(trained: TrainedModel) -> str:
    """Hash that changes with the weights of a model: that of their checksum, which was checked when it was loaded, if
    there is one."""
    checkpoint = trained.checkpoint.resolve()
    checksums = checkpoint / run_directory.CHECKSUMS
    return content_hash(checksums if checksums.exists() else checkpoint / run_directory.MODEL).hex()
