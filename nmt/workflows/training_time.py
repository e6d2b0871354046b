"""Measures the time of the updates of a training before its corpus is prepared."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import numpy as np
import torch
from torch import nn

from nmt.core.device import compute
from nmt.core.errors import InputError
from nmt.core.seed import seed_everything
from nmt.data.config import SubwordsConfig
from nmt.data.store import Ragged, Store, StoredCorpus
from nmt.data.store_writer import StoreWriter
from nmt.data.tokenizer import TokenizerPair, load_tokenizers
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.vocabulary import BOS, EOS, PAD
from nmt.experiment import Experiment
from nmt.models.build import build
from nmt.search.engine import TorchEngine
from nmt.training.objective import BatchTotals, Objective
from nmt.training.optimizer import NamedOptimizer
from nmt.training.processes import Processes
from nmt.training.stream import Position, Stream, TrainingData, prefetched
from nmt.translator.loading import for_inference
from nmt.workflows.init_config import Speed

SECONDS, UPDATES = 6.0, 40
"""Limits of the measurement, which ends when the first of them is reached."""

SENTENCES = 50
"""Number of pairs that are translated."""

WARM_UP = 3
"""Number of first updates that do not count, because they allocate memory and choose kernels; in a slow training there
are fewer."""


def measure_training(
    experiment: Experiment,
    pairs: Sequence[tuple[str, str]],
    *,
    device: str,
    threads: Callable[[], AbstractContextManager[bool]] = lambda: nullcontext(False),
) -> Speed:
    """Trains a model of the configuration for some seconds, on random tokens with the lengths of ``pairs`` of its
    corpus; then translates some pairs with it, as in a validation, and discards it. Raises InputError if these pairs
    are too few or the device's memory is too small. ``threads`` yields True if other programs keep cores busy."""
    chosen = compute(device, "auto")
    seed_everything(experiment.seed)
    config, subwords = experiment.training, experiment.data.subwords
    tokenizers, tokens = _tokenizers(pairs, subwords), subwords.size
    if subwords.model is not None:
        tokens = max(tokenizers.source.size, tokenizers.target.size)
    ends: list[float] = []
    processor_s: list[float] = []
    cores, on_cpu = torch.get_num_threads(), chosen.device.type == "cpu"
    busy = threads() if on_cpu else nullcontext(False)
    with tempfile.TemporaryDirectory(prefix="nmt-init-") as name, busy as is_busy:
        data = TrainingData(_store(Path(name) / "train", pairs, tokenizers, tokens), tokenizers, 0.0, "")
        model = build(experiment.model, source_tokens=tokens, target_tokens=tokens, pad=PAD, bos=BOS)
        model = model.to(chosen.device).train()
        optimizer = NamedOptimizer(model, config.optimizer, chosen)
        objective = Objective(model, config, optimizer, chosen, tokenizers)
        stream = Stream(data, config.batching, config.accumulate, experiment.seed, Processes(), chosen)
        try:
            with prefetched(stream.after(Position())) as updates:
                for prepared in updates:
                    totals = BatchTotals(prepared.tokens, sum(map(len, prepared.pairs)))
                    for share in prepared.shares:
                        objective.backward(share, totals, update=len(ends) + 1)
                    optimizer.unscale()
                    nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm or torch.inf, foreach=True).item()
                    optimizer.step(config.schedule.factor(1, last=config.stopping.updates, plateaus=0))
                    ends.append(time.monotonic())
                    processor_s.append(time.process_time())
                    if len(ends) == UPDATES or ends[-1] - ends[0] > SECONDS:
                        break
        except torch.OutOfMemoryError:
            raise InputError(f"the memory of {chosen.device} is too small for this model, or taken") from None
        sources = [data.train.source(pair).tolist() for pair in range(min(len(data.train), SENTENCES))]
        search = experiment.search.for_validation(config.validation.beam)
        begun = time.monotonic()
        TorchEngine(for_inference(model, chosen), chosen).translate_ids(sources, search)
        validation = (time.monotonic() - begun) / len(sources)
    warm_up = min(WARM_UP, (len(ends) - 1) // 4)
    seconds, alone = (float(np.diff(times)[warm_up:].mean()) for times in (ends, processor_s))
    alone /= cores  # an idle machine takes little more than this
    machine = f"{cores} CPU core{'s' if cores > 1 else ''}"
    if not on_cpu:
        machine = torch.cuda.get_device_name(chosen.device)
    return Speed(seconds, machine, validation, alone if is_busy and alone < 0.8 * seconds else None)


def _tokenizers(pairs: Sequence[tuple[str, str]], config: SubwordsConfig) -> TokenizerPair:
    """Loads the configured subwords, or learns them from the pairs; there are fewer than configured if the pairs do not
    have that many."""
    if config.model is not None:
        return load_tokenizers(config.model, config)
    for halvings in range(8):
        with suppress(InputError):
            return train_tokenizers(pairs, config.model_copy(update={"size": config.size >> halvings}))
    raise InputError("there is too little text beside that of valid and test to measure a training on")


def _store(folder: Path, pairs: Sequence[tuple[str, str]], tokenizers: TokenizerPair, tokens: int) -> Store:
    """Stores pairs of random tokens, with the lengths of the pairs, from a vocabulary with the size of the model's."""
    random = np.random.default_rng(1)
    sides = []
    for tokenizer, texts in zip((tokenizers.source, tokenizers.target), zip(*pairs, strict=True), strict=True):
        lengths_N = np.array([max(len(row), 1) for row in tokenizer.encode_arrays(list(texts))])
        sides.append(Ragged(random.integers(EOS + 1, tokens, lengths_N.sum()), lengths_N))
    corpora, sizes = [StoredCorpus("pairs", 1.0)], (tokens, tokens)
    with StoreWriter(folder, corpora=corpora, vocabulary_sizes=sizes, keep_text=False) as writer:
        writer.append(corpus=0, lines=np.arange(len(pairs)), sources=sides[0], targets=sides[1])
        writer.finish()
    return Store.open(folder)
