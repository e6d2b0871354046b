from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from nmt.core.errors import InputError
from nmt.data.config import DataConfig, SubwordsConfig
from nmt.data.prepared import PreparedData
from nmt.data.tokenizer import TokenizerPair
from nmt.data.train_tokenizers import train_tokenizers
from nmt.workflows.prepare import prepare

Pairs: TypeAlias = list[tuple[str, str]]
Tokenizers: TypeAlias = dict[str, TokenizerPair]
"""Pairs of tokenizers by kind."""

# Syllables, of which words are made up.
GERMAN = ["der", "Hund", "Kat", "ze", "Häu", "ser", "läuft", "schlä", "ft", "groß", "nen", "grün", "ich", "ü", "straß"]
ENGLISH = ["the", "dog", "cat", "hou", "ses", "run", "slee", "p", "big", "small", "not", "but", "street", "ren", "day"]


def _lexicon(syllables: list[str], draw: random.Random) -> list[str]:
    return ["".join(draw.choices(syllables, k=draw.randint(1, 3))) for _ in range(500)]


def make_pairs(count: int, seed: int = 0) -> Pairs:
    """Different made-up pairs of 3 to 12 words, with "der" and "Hund" among the German ones."""
    draw = random.Random(seed)
    german, english = ["der", "Hund", *_lexicon(GERMAN, draw)], _lexicon(ENGLISH, draw)
    pairs: dict[tuple[str, str], None] = {("der Hund !", "the dog ."): None}
    while len(pairs) < count:
        words = draw.randint(3, 12)
        source = " ".join(draw.choices(german, k=words)) + draw.choice(".!?")
        target = " ".join(draw.choices(english, k=max(1, words + draw.randint(-1, 1)))) + "."
        pairs[source, target] = None
    return list(pairs)


def write_pairs(path: Path, pairs: Pairs) -> str:
    """Writes pairs as lines with a TAB; returns the path."""
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return str(path)


def data_config(**data: Any) -> DataConfig:
    """A configuration from what YAML would give, with small subwords."""
    return DataConfig.model_validate_json(json.dumps({"subwords": {"kind": "bpe", "size": 100}, **data}, default=str))


def prepared(run: Path, *, seed: int = 1, **data: Any) -> PreparedData:
    """The corpora of ``data_config``, prepared."""
    return prepare(data_config(**data), run=run, seed=seed)


def refusal(function: Callable[..., object], *arguments: Any, **options: Any) -> str:
    """The message of a call that fails, which is one line."""
    with pytest.raises(InputError) as error:
        function(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture(scope="session")
def pairs() -> Pairs:
    return make_pairs(400)


@pytest.fixture(scope="session")
def tokenizers(pairs: Pairs) -> Tokenizers:
    """Tokenizers by kind; BPE has one per side, char does not normalise, `bytes` is unigram with byte_fallback."""
    configs = {
        "unigram": SubwordsConfig(kind="unigram", size=120),
        "bpe": SubwordsConfig(kind="bpe", size=100, joint=False, normalization="nmt_nfkc_cf"),
        "char": SubwordsConfig(kind="char", normalization="identity"),
        "word": SubwordsConfig(kind="word"),
        "bytes": SubwordsConfig(kind="unigram", size=380, byte_fallback=True, normalization="identity"),
    }
    return {kind: train_tokenizers(pairs, config) for kind, config in configs.items()}
