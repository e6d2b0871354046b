"""Models in CTranslate2's format translate as they do here."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest
import torch

from nmt.core.device import Compute
from nmt.core.errors import InputError
from nmt.data.config import SubwordsConfig
from nmt.data.tokenizer import TokenizerPair
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.vocabulary import EOS
from nmt.evaluation.perplexity import token_log_probs
from nmt.extras.exchange.export import ctranslate2, engine
from nmt.extras.exchange.export.engine import BATCH_TOKENS, CTranslate2Engine
from nmt.models.config import CopyingConfig, ModelConfig
from nmt.models.seq2seq import Seq2Seq
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from tests.extras.exchange.shared import made
from tests.models.variants import MARIAN

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

COMPUTE = Compute(torch.device("cpu"), "float32")
Model: TypeAlias = Seq2Seq[Any, Any]
LAYERS = {"kind": "transformer", "layers": 2, "size": 16, "heads": 2, "feed_forward": 12}

MODELS: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "post-norm, gelu, tied": {"both": {"norm": "post", "activation": "gelu"}, "tie": "all"},
    "as Marian": {"both": MARIAN, "tie": "all"},
    "swiglu, learned positions that end early": {
        "both": {"activation": "swiglu", "positions": "learned", "max_positions": 5}
    },
    "plain dot products, other depths": {
        "both": {"score": "dot"},
        "encoder": {"layers": 1, "heads": 4},
        "decoder": {"layers": 3, "feed_forward": 20},
        "score": "dot",
        "tie": "output",
    },
}


def config(
    both: Any = None, encoder: Any = None, decoder: Any = None, tie: str = "none", width: int = 16, **attention: str
) -> ModelConfig:
    sides = {
        side: {**LAYERS, **(both or {}), **(own or {})} for side, own in (("encoder", encoder), ("decoder", decoder))
    }
    attention = {"score": "scaled_dot", "weights": "softmax", **attention}
    return ModelConfig.model_validate({"embedding": {"size": width, "tie": tie}, **sides, "attention": attention})


@pytest.fixture(scope="module")
def tokenizers() -> TokenizerPair:
    words = ["eins", "zwei", "drei", "hund", "katze", "maus", "und", "oder"]
    pairs = [(f"{one} {other}", f"{other} {one} {one}") for one in words for other in words]
    return train_tokenizers(pairs, SubwordsConfig.model_validate({"kind": "bpe", "size": 40, "joint": True}))


def exported(options: dict[str, Any], tokenizers: TokenizerPair, folder: Path) -> tuple[Model, CTranslate2Engine]:
    """A model, and the engine of its export."""
    model_config = config(**options)
    ctranslate2.check(model_config)
    model = made(model_config, tokenizers.target.size, end=5.0)
    model.output.bias_V[:EOS] -= 100.0  # what no trained model writes, and CTranslate2 scores in its own way
    ctranslate2.save(model, model_config, tokenizers, folder)
    return model, CTranslate2Engine(folder, tokenizers, device="cpu", precision="float32", workers=2)


@pytest.fixture
def shipped(tokenizers: TokenizerPair, tmp_path: Path) -> CTranslate2Engine:
    """The engine of a model as shipped."""
    return exported({}, tokenizers, tmp_path)[1]


@pytest.fixture(scope="module")
def given(tokenizers: TokenizerPair) -> list[list[int]]:
    """Sources."""
    draw, size = torch.Generator().manual_seed(3), tokenizers.target.size
    return [torch.randint(4, size, (length,), generator=draw).tolist() for length in (1, 2, 3, 5, 5, 8, 13, 20)]


def most(source: list[int]) -> int:
    return (len(source) + 1) * 2 + 9


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_model_translates_alike(
    name: str, given: list[list[int]], tokenizers: TokenizerPair, tmp_path: Path
) -> None:
    model, engine = exported(MODELS[name], tokenizers, tmp_path)
    greedy = SearchConfig(beam=1, repetition_margin=None, batch_tokens=30)
    own, theirs = TorchEngine(model, COMPUTE).translate_ids(given, greedy), engine.translate_ids(given, greedy)
    assert [each.tokens for (each,) in theirs] == [each.tokens for (each,) in own]
    assert len({each.tokens for (each,) in own}) > 4
    unscored = engine.translate_ids(given, greedy, scored=False)
    assert [each.tokens for (each,) in unscored] == [each.tokens for (each,) in own]
    assert all(math.isnan(each.score) and math.isnan(each.log_prob) for (each,) in unscored)
    for normalization in ("gnmt", "average"):
        wide = SearchConfig(beam=4, n_best=3, length_penalty=0.7, length_normalization=normalization, batch_tokens=200)
        hypotheses = engine.translate_ids(given, wide, scored=False)  # beams need them
        for source, found in zip(given, hypotheses, strict=True):
            assert 1 <= len(found) <= 3
            assert not any(math.isnan(each.score) for each in found)
            assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
            pairs = [source] * len(found), [each.tokens for each in found]
            rescored = token_log_probs(model, *pairs, COMPUTE, batch_tokens=500)
            ((log_p_of_nothing,),) = token_log_probs(model, [source], [()], COMPUTE, batch_tokens=500)
            # the others share out the probability of end-of-sentence, which is never the first token
            shared = math.log1p(-math.exp(log_p_of_nothing))
            for each, log_p_T in zip(found, rescored, strict=True):
                # at the limit it adds no end-of-sentence; it rounds sums to three places
                expected = [float(log_p_T.sum())] + [float(log_p_T[:-1].sum())] * (len(each.tokens) == most(source))
                assert each.tokens
                assert min(abs(each.log_prob + shared - one) for one in expected) < 2e-3


@pytest.mark.parametrize(("asked", "most"), [(30, 30), (5000, BATCH_TOKENS)])
def test_batches_on_a_cpu_are_as_small_as_asked_and_as_is_fast(
    asked: int, most: int, shipped: CTranslate2Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator, sizes = shipped._translator, list[int]()

    def counted(batch: list[list[str]], **options: Any) -> list[Any]:
        sizes.append(sum(map(len, batch)))
        started: list[Any] = translator.translate_batch(batch, **options)
        return started

    monkeypatch.setattr(shipped, "_translator", SimpleNamespace(device="cpu", translate_batch=counted))
    shipped.translate_ids([[4]] * (most + 1), SearchConfig(beam=1, batch_tokens=asked, max_length=1))
    assert sorted(sizes) == [1, most]


def test_lengths_and_prefixes_are_kept(given: list[list[int]], shipped: CTranslate2Engine) -> None:
    for search in (SearchConfig(beam=1, max_length=3), SearchConfig(beam=3, min_length=4, max_length=6)):
        for found in shipped.translate_ids(given, search):
            assert search.min_length <= len(found[0].tokens) <= (search.max_length or 0)
    prefixes = [[5, 6], [], [7]] + [[]] * (len(given) - 3)
    hypotheses = shipped.translate_ids(given, SearchConfig(beam=2), prefixes=prefixes)
    for prefix, found in zip(prefixes, hypotheses, strict=True):
        assert list(found[0].tokens[: len(prefix)]) == prefix
    repeated = [each.tokens for (each,) in shipped.translate_ids(given, SearchConfig(beam=1, no_repeat=1))]
    assert all(len(set(tokens)) == len(tokens) for tokens in repeated)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"both": {"positions": "rotary"}}, "model.encoder.positions"),
        ({"encoder": {"causal": True}}, "model.encoder.causal"),
        ({"score": "general"}, "model.attention.score"),
        ({"weights": "sparsemax"}, "model.attention.weights"),
        ({"decoder": {"score": "additive"}}, "model.decoder.score"),
        ({"encoder": {"size": 8}}, "model.encoder.size"),
        ({"width": 8}, "model.encoder.size"),
    ],
)
def test_what_ctranslate2_cannot_compute_is_named(options: dict[str, Any], key: str) -> None:
    with pytest.raises(InputError, match=f"^{key}: is .*, and CTranslate2 needs .*; use --to onnx$"):
        ctranslate2.check(config(**options))


@pytest.mark.parametrize(
    ("side", "kind"), [("decoder", {"kind": "rnn", "size": 8}), ("encoder", {"kind": "embeddings"})]
)
def test_other_layers_are_refused(side: str, kind: dict[str, Any]) -> None:
    model_config = ModelConfig.model_validate({"encoder": LAYERS, "decoder": LAYERS, side: kind})
    message = f"^model.{side}.kind: is {kind['kind']}, and CTranslate2 needs transformer; use --to onnx$"
    with pytest.raises(InputError, match=message):
        ctranslate2.check(model_config)


def test_copies_are_refused() -> None:
    with pytest.raises(InputError, match="^model.copying: is pointer, and CTranslate2 needs null"):
        ctranslate2.check(config().model_copy(update={"copying": CopyingConfig()}))


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"sampling": {}}, "search.sampling"),
        ({"consensus": {}}, "search.consensus"),
        ({"coverage_penalty": 0.2}, "search.coverage_penalty"),
        ({"repetition_margin": 2.0}, "search.repetition_margin"),
        ({"beam": 4, "groups": 2}, "search.groups"),
    ],
)
def test_searches_of_our_own_are_refused(settings: dict[str, Any], key: str, shipped: CTranslate2Engine) -> None:
    with pytest.raises(InputError, match=f"^{key}: "):
        shipped.translate_ids([[5]], SearchConfig.model_validate(settings))


def test_a_ctranslate2_whose_loader_overflows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import ctranslate2

    for version, accepted in (("4.8.1", True), ("4.10.0", True), ("5.0.0rc1", True), ("4.8.0", False), ("4.5", False)):
        monkeypatch.setattr(ctranslate2, "__version__", version)
        if accepted:
            assert engine.required() is ctranslate2
        else:
            message = f"^CTranslate2 {version} is too old, 4.8.1 or newer is not installed: "
            with pytest.raises(InputError, match=message):
                engine.required()
