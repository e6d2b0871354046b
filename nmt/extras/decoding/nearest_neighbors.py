"""Translations that follow the most similar known ones: nearest-neighbor machine translation.

The readouts of a model before each token of known translations are kept with the tokens (Khandelwal et al. 2021,
"Nearest Neighbor Machine Translation"). In a search, the ``NEAREST`` of them vote for the next token, each with a
weight that falls with its distance from the readout q of the hypothesis, and together against the model (Jiang et al.
2021, "Learning Kernel-Smoothed Machine Translation with Retrieved Examples", with a fixed kernel):

    u_k = c exp(-|q - q_k|^2 / t)                    of a near key k with token y_k
    w   = min(sum_k u_k / (1 + sum_k u_k), w_max)
    p(y) = (1 - w) p_model(y) + w sum_k u_k [y_k = y] / sum_k u_k

The strength c, t and w_max are one of ``KERNELS``, by the likelihood of held-out pairs.

Only the translations of the ``SENTENCES`` most similar sources have keys, so that a step compares hundreds of keys and
not millions (Deguchi et al. 2023, "Subset Retrieval Nearest Neighbor Machine Translation"). Sources are compared by the
cosine of the encoder's vectors of whole sentences.

Shapes: B sentences, N rows of hypotheses, W of them of each sentence, R width of a readout, E width of a vector of a
sentence, P pairs, X tokens of all targets, M keys of a sentence, K of them near, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from nmt.core import log
from nmt.core.device import uploaded
from nmt.core.errors import InputError
from nmt.core.files import content_hash, reading, whole_file
from nmt.core.record import BatchRecord
from nmt.data.batching import TokenIds, pair_batches
from nmt.data.config import CorpusConfig
from nmt.data.corpus import numbered_pairs
from nmt.data.prepared import opened
from nmt.data.store import Store
from nmt.models.seq2seq import Seq2Seq, Step
from nmt.nn.output import top_tokens_in_parts
from nmt.search.engine import TorchEngine
from nmt.training.run_directory import MODEL
from nmt.translator.loading import TrainedModel
from nmt.translator.translator import Translator

TRAIN = "train"
"""Name of the training pairs."""
SENTENCES, NEAREST = 32, 8
"""Maximum numbers of similar pairs and of near keys."""
KERNELS = ((4.0, 0.1, 0.6), (2.0, 0.1, 0.3))
"""Strength: votes of a key at no distance, where the model has one; temperature, as a share of the mean squared length
of keys, which differs between models; and maximum weight of all keys. The first gains most where the pairs resemble the
text or the model is of another domain, but cost a finished model of captions 1.2 BLEU, and the second 0.2."""
HELD_OUT = 300
"""Maximum number of pairs to choose by."""
MOST_BYTES = 1 << 31
"""Maximum size of all keys; of more pairs every second is taken, and so on."""
BATCH_TOKENS = 8192


@dataclass(frozen=True)
class Datastore:
    """The keys of pairs."""

    vector_PE: Tensor
    """A vector of length 1 for each source."""
    count_P: Tensor
    """Number of keys of each pair."""
    key_XR: Tensor
    token_X: Tensor
    kernel_3: Tensor
    """One of ``KERNELS``."""

    @staticmethod
    def of(trained: TrainedModel, sources: TokenIds, targets: TokenIds) -> Datastore:
        """Computes the keys of pairs of token ids without end-of-sentence; their order changes."""
        every = 1 + 2 * trained.model.decoder.readout_size * sum(map(len, targets)) // MOST_BYTES
        if every > 1:
            log.warning(f"--neighbors: one of {every} pairs is followed, as all would take too much memory")
        parts, model = list[tuple[Tensor, ...]](), trained.model
        for source_BS, target_BT, is_token_BT in _batches(trained, sources[::every], targets[::every]):
            with torch.inference_mode(), trained.compute.autocast():
                readout_BTR = model.teacher_forced(target_BT, model.encode(source_BS)).readout_BTR
                vector_BE = vectors(model, source_BS)
            keys = readout_BTR[is_token_BT].half(), target_BT[is_token_BT].int()
            parts.append(tuple(each.cpu() for each in (vector_BE.half(), is_token_BT.sum(dim=1), *keys)))
        vector_PE, count_P, key_XR, token_X = map(torch.cat, zip(*parts, strict=True))
        return Datastore(vector_PE, count_P, key_XR, token_X, torch.tensor(KERNELS[0]))

    def with_best_kernel(
        self, trained: TrainedModel, sources: TokenIds, targets: TokenIds, *, are_own: bool
    ) -> Datastore:
        """Chooses the kernel by some of the held-out pairs, if there are any, or of its own pairs."""
        if len(self.count_P) <= SENTENCES:  # all of them vote
            return self
        step = 1 + len(sources) // HELD_OUT
        scores = self.log_likelihoods(trained, sources[::step], targets[::step], are_own=are_own)
        log.detail(f"--neighbors: log-likelihoods {', '.join(f'{score:.1f}' for score in scores)} of {KERNELS}")
        return replace(self, kernel_3=torch.tensor(KERNELS[scores.index(max(scores))]))

    @torch.inference_mode()
    def log_likelihoods(
        self, trained: TrainedModel, sources: TokenIds, targets: TokenIds, *, are_own: bool
    ) -> list[float]:
        """Computes the sum of the log-probabilities of target tokens and end-of-sentence with each of ``KERNELS``. If
        the pairs are the datastore's own, their own keys do not vote."""
        total, model = torch.zeros(len(KERNELS), dtype=torch.float64), trained.model
        for source_BS, target_BT, is_token_BT in _batches(trained, sources, targets):
            with trained.compute.autocast():
                memory = WithNeighbors(model, self, skipped=int(are_own)).encode(source_BS)
                decoded = model.teacher_forced(target_BT, memory.own)
                index_N, gold_N = is_token_BT.flatten().nonzero()[:, 0], target_BT[is_token_BT]
                copies = None if decoded.copies is None else decoded.copies.select(index_N)
                readout_NR = decoded.readout_BTR[is_token_BT]
                p_N = model.output.likelihood(readout_NR, gold_N, copies=copies).log_p_N.float().exp()
            for number, kernel in enumerate(KERNELS):
                votes = self.votes(decoded.readout_BTR, memory, kernel)
                weight_N, share_NK, token_NK = (each[index_N] for each in votes)
                of_gold_N = (share_NK * (token_NK == gold_N[:, None])).sum(dim=1)
                total[number] += ((1 - weight_N[:, 0]) * p_N + of_gold_N).clamp(min=1e-9).double().log().sum().cpu()
        return total.tolist()

    def near(self, query_BE: Tensor, skipped: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Finds the keys of the pairs whose sources are most similar, and their tokens, for each sentence, without a
        number of the most similar ones."""
        for part_BE in torch.split(query_BE, 64):
            similar_BP = part_BE @ self._vector_EP
            nearest_BP = similar_BP.topk(min(skipped + SENTENCES, similar_BP.shape[1]), dim=1).indices[:, skipped:]
            for pairs in nearest_BP.tolist():
                own = [slice(*self._starts[pair : pair + 2]) for pair in pairs]
                yield torch.cat([self.key_XR[keys] for keys in own]), torch.cat([self.token_X[keys] for keys in own])

    def votes(
        self, query_BWR: Tensor, memory: NeighborMemory, kernel: Sequence[float]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Computes w, the shares of the near keys in p(y), and their tokens, (N, 1) and (N, K), for W readouts of each
        sentence."""
        strength, temperature, most = kernel
        query_BWR = query_BWR.float()
        with torch.autocast(query_BWR.device.type, enabled=False):
            product_BWM = query_BWR @ memory.key_BMR.mT
        distance_BWM = query_BWR.square().sum(dim=2, keepdim=True) - 2 * product_BWM + memory.square_BM[:, None]
        near = distance_BWM.topk(min(NEAREST, distance_BWM.shape[2]), dim=2, largest=False)
        token_NK = memory.token_BM[:, None].expand_as(distance_BWM).gather(2, near.indices).flatten(0, 1).long()
        # u_k / sum_k u_k also where all u_k are 0
        kernel_NK = -near.values.clamp(min=0).flatten(0, 1) / (temperature * self._square)
        votes_N1 = strength * kernel_NK.exp().sum(dim=1, keepdim=True)
        weight_N1 = (votes_N1 / (1 + votes_N1)).clamp(max=most)
        return weight_N1, weight_N1 * kernel_NK.softmax(dim=1), token_NK

    @cached_property
    def _starts(self) -> list[int]:
        return F.pad(self.count_P.cumsum(0), (1, 0)).tolist()

    @cached_property
    def _vector_EP(self) -> Tensor:
        return self.vector_PE.float().T

    @cached_property
    def _square(self) -> float:
        """The mean squared length of the first keys."""
        return float(self.key_XR[:10_000].float().square().sum(dim=1).mean())


def _batches(trained: TrainedModel, sources: TokenIds, targets: TokenIds) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yields batches of pairs as padded sources, padded targets and a mask of the target tokens."""
    for batch in pair_batches(sources, targets, BATCH_TOKENS):
        arrays = batch.source_BS, batch.target_BT, batch.target_length_B
        source_BS, target_BT, length_B = (uploaded(torch.from_numpy(each), trained.compute.device) for each in arrays)
        yield source_BS, target_BT, torch.arange(target_BT.shape[1], device=length_B.device) < length_B[:, None]


def vectors(model: Seq2Seq[Any, Any], source_BS: Tensor) -> Tensor:
    """Computes the vector of each source, of length 1, in float32."""
    encoded = model.encoder(model.encoder.embed(source_BS), source_BS == model.pad)
    return F.normalize(encoded.final_BD.float(), dim=1)


@dataclass(frozen=True)
class NeighborMemory(BatchRecord):
    """The memory of the model, and the keys of each sentence."""

    own: BatchRecord
    key_BMR: Tensor
    square_BM: Tensor
    """Squared lengths of keys; infinite for padding."""
    token_BM: Tensor


class WithNeighbors:
    """A model that follows near keys; see ``StepModel``."""

    def __init__(
        self, model: Seq2Seq[Any, Any], datastore: Datastore, *, skipped: int = 0, prefix: Sequence[int] = ()
    ) -> None:
        """``skipped`` is the number of the most similar pairs that have no vote; ``prefix`` are the tokens at the begin
        of each of their sources."""
        self.pad, self.training, self.first_token = model.pad, model.training, model.first_token
        self._model, self._datastore, self._skipped, self._prefix = model, datastore, skipped, list(prefix)
        self._kernel = datastore.kernel_3.tolist()

    def encode(self, source_BS: Tensor) -> NeighborMemory:
        """See ``StepModel``. Raises InputError for a source into another language than that of the keys."""
        if self._prefix and any(source[: len(self._prefix)] != self._prefix for source in source_BS.tolist()):
            raise InputError("--neighbors: the pairs are into another language; load the model with this one for it")
        query_BE = vectors(self._model, source_BS).cpu()
        with torch.autocast("cpu", enabled=False):  # distances need float32
            found = list(self._datastore.near(query_BE, self._skipped))
        keys = [key_MR.float() for key_MR, _ in found]
        squares, tokens = [key_MR.square().sum(dim=1) for key_MR in keys], [token_M for _, token_M in found]
        near = (
            pad_sequence(each, batch_first=True, padding_value=padding).to(source_BS.device)
            for each, padding in ((keys, 0.0), (squares, torch.inf), (tokens, 0.0))
        )
        return NeighborMemory(self._model.encode(source_BS), *near)

    def start(self, memory: NeighborMemory) -> Any:
        """See ``StepModel``."""
        return self._model.start(memory.own)

    def step(self, token_N: Tensor, memory: NeighborMemory, state: Any) -> Step[Any]:
        """See ``StepModel``."""
        model, sentences = self._model, len(memory.token_BM)
        own = model.decoder.step(token_N, model.decoder_memory(memory.own), state)
        step = model.predicted(own, memory.own)
        query_BWR = own.readout_NR.view(sentences, -1, own.readout_NR.shape[1])
        weight_N1, share_NK, token_NK = self._datastore.votes(query_BWR, memory, self._kernel)

        def logits(rows: slice) -> Tensor:
            p_NV = (1 - weight_N1[rows]) * step.logits(rows).float().softmax(dim=1)
            p_NV.scatter_add_(1, token_NK[rows], share_NK[rows])
            return p_NV.log_()

        return replace(step, logits=logits, top_tokens=partial(top_tokens_in_parts, logits, token_N, step.vocabulary))


def read_datastore(path: Path) -> Datastore | None:
    """Reads a datastore; returns None if there is none, or a damaged one."""
    try:
        found = Datastore(**safetensors.torch.load_file(path))
        sizes = found.vector_PE.shape[:-1], found.key_XR.shape[:-1], found.token_X.shape
        all_of_them = (int(found.count_P.sum()),)
        is_whole = sizes == (found.count_P.shape, all_of_them, all_of_them)
        is_kernel = found.kernel_3.shape == (3,) and bool((found.kernel_3 > 0).all())
        return found if is_whole and is_kernel and min(found.count_P.min(), found.token_X.min() + 1) > 0 else None
    except (OSError, safetensors.SafetensorError, TypeError, IndexError, RuntimeError):
        return None


def with_neighbors(translator: Translator, name: str | Path) -> Translator:
    """Returns the translator with a model that follows the training pairs (``TRAIN``) or those of a file, whose keys
    are kept in the run. Raises InputError for an ensemble, for another engine, and for pairs that cannot be read."""
    engine, trained, path = translator.engine, translator.trained, Path(name)
    if not isinstance(engine, TorchEngine) or not isinstance(engine.model, Seq2Seq):
        raise InputError("--neighbors: are of one model; leave out --ensemble, --wait and --engine")
    data = opened(trained.experiment.data, run=trained.run) if str(name) == TRAIN else None
    with reading(path):
        names = [content_hash(path).hex() if data is None else data.key, content_hash(trained.checkpoint / MODEL).hex()]
    prefix = trained.source_prefix if data is None else ()  # training pairs have those of their own languages
    names.append("-".join(map(str, [trained.compute.precision, *prefix])))
    kept = trained.run / f"neighbors-{names[0][:12]}-{names[1][:12]}-{names[2]}.safetensors"
    if (datastore := read_datastore(kept)) is None:
        log.info(f"{kept}: is computed once for these pairs and this model")
        pairs = _of_file(trained, path) if data is None else _of_store(data.train)
        valid = None if data is None or data.valid is None else _of_store(data.valid)
        datastore = Datastore.of(trained, *pairs)
        datastore = datastore.with_best_kernel(trained, *(valid or pairs), are_own=valid is None)
        try:
            with whole_file(kept) as unfinished:
                safetensors.torch.save_file(vars(datastore), unfinished)
        except OSError as error:
            log.warning(f"{kept}: cannot be written ({error.strerror}), and will be computed again")
    return replace(translator, engine=replace(engine, model=WithNeighbors(engine.model, datastore, prefix=prefix)))


def _of_store(store: Store) -> tuple[TokenIds, TokenIds]:
    rows = range(len(store))
    sources = [[*store.prefix(row), *store.source(row).tolist()] for row in rows]
    return sources, [store.target(row).tolist() for row in rows]


def _of_file(trained: TrainedModel, path: Path) -> tuple[TokenIds, TokenIds]:
    """Reads the pairs of a file that a model could have learnt."""
    data, tokenizers = trained.experiment.data, trained.tokenizers
    corpus = CorpusConfig.model_construct(pairs=path, languages=trained.experiment.language_names)
    _, sources, targets = zip(*numbered_pairs(corpus), strict=True)
    ids = trained.prefixed(tokenizers.source.encode_batch(sources)), tokenizers.target.encode_batch(targets)
    short = [pair for pair in zip(*ids, strict=True) if max(map(len, pair)) <= data.filters.max_length]
    if not short:
        raise InputError(f"{path}: no pair is short enough for the model; give others")
    return [source for source, _ in short], [target for _, target in short]
