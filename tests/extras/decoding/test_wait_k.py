"""Wait-k translation."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

import nmt as package
from nmt.core.errors import InputError
from nmt.data.config import SubwordsConfig
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.vocabulary import BOS, EOS, PAD
from nmt.extras.decoding.wait_k import WaitKModel, WordStarts, wait_scores, waiting, word_starts
from nmt.models.ensemble import Ensemble
from nmt.models.seq2seq import Seq2Seq
from nmt.models.step_model import StepModel
from nmt.search.engine import TorchEngine
from nmt.search.logits_processors import LogitsProcessors
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from tests.models.variants import kinds, make
from tests.search.plain_search import MODELS, forced, padded

VOCABULARY = 14

STARTS = [1, 4, 6, 8, 10, 12]
"""Tokens with which a word begins; all others go on with it."""

BEGINS_V = torch.tensor([token in STARTS for token in range(VOCABULARY)])
NO_PREFIX_V = torch.zeros_like(BEGINS_V)
WORDS = WordStarts(BEGINS_V, BEGINS_V | (torch.arange(VOCABULARY) == EOS), NO_PREFIX_V)

DRAW = random.Random(1)

SOURCES = [[*DRAW.choices(range(4, VOCABULARY), k=length), EOS] for length in (8, 3, 6)]
LIMIT_B = torch.tensor([9, 5, 7])
LIMITED = list(zip(SOURCES, LIMIT_B.tolist(), strict=True))


def a_model(config: dict[str, Any], seed: int = 3) -> Seq2Seq[Any, Any]:
    """A model whose translations vary, and seldom end."""
    model = make(config, tokens=VOCABULARY, seed=seed)
    with torch.no_grad():
        model.decoder.embedding.weight_VD.mul_(3.0)
        model.output.bias_V.zero_()[[PAD, BOS, EOS]] = torch.tensor([-1e3, -1e3, -1.0])
    return model


def words_of(source: Sequence[int]) -> list[list[int]]:
    words: list[list[int]] = []
    for token in source[:-1]:
        if not words or token in STARTS:
            words.append([])
        words[-1].append(token)
    return words


def plain_wait_k(
    models: Sequence[Any], source: Sequence[int], k: int, limit: int, before: Sequence[int] = ()
) -> list[int]:
    """The definition: a translation, one token at a time, each by forced decoding from a prefix; what
    stands ``before`` the source belongs to its first word."""
    words, written = words_of(source), list[list[int]]()
    words[0] = [*before, *words[0]]

    def log_probs(number: int) -> list[float]:
        """Computes the log-probabilities of the next token, given the source words of target word ``number``."""
        read = min(k + number - 1, len(words))
        prefix = [token for word in words[:read] for token in word] + [EOS] * (read == len(words))
        tokens = tuple(token for word in written for token in word)
        by_model = torch.tensor([forced(model, prefix, tokens).log_prob_V for model in models])
        return by_model.logsumexp(0).tolist()

    def best(values: list[float], allowed: Sequence[int]) -> int:
        return max(allowed, key=lambda token: values[token])

    everything, starts = range(VOCABULARY), [*STARTS, EOS]
    while sum(map(len, written)) < limit - 1:
        token = best(log_probs(max(len(written), 1)), everything)
        if written and token in starts:
            token = best(log_probs(len(written) + 1), starts)
        if token == EOS:
            break
        if not written or token in starts:
            written.append([])
        written[-1].append(token)
    return [token for word in written for token in word]


def wait_k(
    model: StepModel[Any, Any],
    sources: list[list[int]],
    k: int,
    limit_B: torch.Tensor,
    ends_prefix_V: torch.Tensor = NO_PREFIX_V,
) -> list[list[int]]:
    waits = WaitKModel(model, k, replace(WORDS, ends_prefix_V=ends_prefix_V))
    found = greedy_search(EOS, Ranking())(waits, padded(sources), LogitsProcessors(limit_B, eos=EOS))
    return [list(hypothesis.tokens) for (hypothesis,) in found]


# of argmax's scores some are equal but for rounding, which differs between a batch and a sentence
@pytest.mark.parametrize("config", [kind for kind in kinds() if kind.values[0]["attention"]["weights"] != "argmax"])
def test_each_word_is_found_from_its_prefix(config: dict[str, Any]) -> None:
    model = a_model(config)
    for k in (1, 3):
        expected = [plain_wait_k([model], source, k, limit) for source, limit in LIMITED]
        assert wait_k(model, SOURCES, k, LIMIT_B) == expected


def test_what_stands_before_a_source_is_read_with_its_first_word() -> None:
    last, befores = VOCABULARY - 1, [[4, 5, 13, 6, 8, 13], [], [13]]
    sources = [[token if token != last else 5 for token in source] for source in SOURCES]
    ends_prefix_V = torch.arange(VOCABULARY) == last
    for name, k in itertools.product(MODELS, (1, 2)):
        model = a_model(MODELS[name])
        read = [[*before, *source] for before, source in zip(befores, sources, strict=True)]
        rows = zip(sources, LIMIT_B.tolist(), befores, strict=True)
        expected = [plain_wait_k([model], source, k, limit, before) for source, limit, before in rows]
        assert wait_k(model, read, k, LIMIT_B, ends_prefix_V) == expected


def test_an_ensemble_waits_as_one_model_does() -> None:
    models = [a_model(config) for config in MODELS.values()]
    expected = [plain_wait_k(models, source, 2, limit) for source, limit in LIMITED]
    assert wait_k(Ensemble(models), SOURCES, 2, LIMIT_B) == expected


def test_words_that_have_not_been_read_change_nothing() -> None:
    draw, differ = random.Random(1), 0
    for name, k in itertools.product(MODELS, (1, 2, 3)):
        for seed in range(5):
            words = [[draw.choice(STARTS), *draw.choices([5, 7, 9], k=draw.randint(0, 2))] for _ in range(7)]
            t = draw.randint(1, 6 - k)
            others = words[: k + t - 1] + [[draw.choice(STARTS), 11, 13] for _ in range(draw.randint(1, 5))]
            sources = [[token for word in each for token in word] + [EOS] for each in (words, others)]
            found = wait_k(a_model(MODELS[name], seed), sources, k, torch.tensor([14, 14]))
            first, second = (words_of([*tokens, EOS]) for tokens in found)
            assert first[:t] == second[:t]
            differ += first != second
    assert differ > 6


@pytest.mark.parametrize("name", list(MODELS))
def test_who_waits_for_the_whole_sentence_is_greedy(name: str) -> None:
    model = a_model(MODELS[name])
    waits = WaitKModel(model, 10, WORDS)
    greedy, waited = (
        greedy_search(EOS, Ranking())(each, padded(SOURCES), LogitsProcessors(LIMIT_B, eos=EOS))
        for each in (model, waits)
    )
    assert waited == greedy


def test_words_of_each_kind_of_vocabulary(trained: Path) -> None:
    translator = package.load(trained / "run")
    tokenizer = translator.trained.tokenizers.target
    begins = word_starts(tokenizer)
    assert list(begins) == tokenizer.pieces(range(tokenizer.size))
    ids = tokenizer.encode("der hund und eine katze")
    assert sum(begins[piece] for piece in tokenizer.pieces(ids)) == 5 < len(ids)
    assert word_starts(SimpleNamespace(size=3, pieces=lambda _: ["▁", "b", "狗"]))["狗"]  # type: ignore[arg-type]
    pair = train_tokenizers([("der hund", "the dog")], SubwordsConfig(kind="word"))
    of_words = replace(translator, trained=replace(translator.trained, tokenizers=pair))
    model = cast(WaitKModel, cast(TorchEngine, waiting(of_words, 1).engine).model)
    assert model.words.begins_source_V.tolist() == [False, True, True, False, True, True, True, True]
    assert model.words.begins_target_V.tolist() == [True] * 8


def test_blank_lines_do_not_lag(trained: Path) -> None:
    translator = package.load(trained / "run", precision="float32")
    (blank,) = wait_scores(translator, [" ", "eins zwei", ""], lambda texts: float(len(texts)), waits=[9])
    assert (blank.average_lagging, blank.bleu) == (2.0, 3.0)
    with pytest.raises(InputError, match="--wait: needs a number of at least 1"):
        package.load(trained / "run", wait=0)
