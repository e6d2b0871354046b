"""MarianMT folders of random weights, written by `transformers`, with SentencePiece models of the shipped corpus."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch

ROOT = Path(__file__).resolve().parents[4]
CORPUS = ROOT / "data" / "de-en"


@dataclass(frozen=True)
class Shape:
    """A folder to write: settings of `MarianConfig`, and what else is other than in OPUS-MT."""

    config: dict[str, Any] = field(default_factory=dict)
    generation: dict[str, Any] = field(default_factory=dict)
    separate: bool = False
    languages: tuple[str, ...] = ()
    bias: bool = True
    pickled: bool = False
    updates: int = 0
    """Updates of training, after which translations differ and end."""


SHAPES = {
    "opus": Shape({"init_std": 0.1}, bias=False, updates=150),
    "relu": Shape({"activation_function": "relu", "scale_embedding": False}, {"renormalize_logits": None}),
    "gelu": Shape({"activation_function": "gelu", "d_model": 30, "encoder_attention_heads": 5}),
    "deep-encoder": Shape({"encoder_layers": 3, "decoder_layers": 1, "decoder_ffn_dim": 24}),
    "separate": Shape({"share_encoder_decoder_embeddings": False}, separate=True),
    "one-vocabulary": Shape({"share_encoder_decoder_embeddings": False, "decoder_attention_heads": 2}),
    "untied": Shape({"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}, separate=True),
    "head": Shape({"tie_word_embeddings": False}),
    "pickled": Shape(pickled=True),
    "languages": Shape(languages=("fra", "spa", "zh_Hant")),
    "start-is-end": Shape({"decoder_start_token_id": 0}, {"bad_words_ids": None, "renormalize_logits": None}),
}


@cache
def lines(side: str, count: int, name: str = "train") -> list[str]:
    """The first lines of a side of the corpus."""
    return (CORPUS / f"{name}.{side}").read_text(encoding="utf-8").splitlines()[:count]


@cache
def subwords(side: str) -> bytes:
    """A unigram model of a side, with SentencePiece's own special ids."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines(side, 1500)), model_writer=model, vocab_size=300, minloglevel=2, num_threads=1
    )
    return model.getvalue()


def vocabulary(sides: tuple[str, ...], languages: tuple[str, ...] = ()) -> dict[str, int]:
    """The pieces of the sides as Marian has them: end and unknown first, padding last. A few pieces are left out, as
    those are that do not occur in a training corpus."""
    pieces: dict[str, None] = {"</s>": None, "<unk>": None}
    for side in sides:
        processor = sentencepiece.SentencePieceProcessor.from_proto(subwords(side))
        found = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
        pieces |= dict.fromkeys(piece for number, piece in enumerate(found) if number % 50 != 49)
    pieces |= dict.fromkeys(f">>{language}<<" for language in languages)
    return {piece: number for number, piece in enumerate([*pieces, "<pad>"])}


def write(folder: Path, shape: Shape, *, seed: int = 1) -> Path:
    """Writes a folder; weights are drawn large enough for models to disagree."""
    from transformers import GenerationConfig, MarianConfig, MarianMTModel

    folder.mkdir(parents=True)
    names = {"vocab.json": vocabulary(("de",) if shape.separate else ("de", "en"), shape.languages)}
    if shape.separate:
        names["target_vocab.json"] = vocabulary(("en",))
    source, target = names["vocab.json"], names.get("target_vocab.json", names["vocab.json"])
    if shape.separate:  # both have padding at one id
        size = min(len(source), len(target))
        for ids in (source, target):
            last = next(piece for piece, number in ids.items() if number == size - 1)
            ids[last], ids["<pad>"] = ids["<pad>"], size - 1
    for name, ids in names.items():
        (folder / name).write_text(json.dumps(dict(sorted(ids.items(), key=lambda item: item[1]))), encoding="utf-8")
    (folder / "source.spm").write_bytes(subwords("de"))
    (folder / "target.spm").write_bytes(subwords("en"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"source_lang": "de", "target_lang": "en", "separate_vocabs": shape.separate}), encoding="utf-8"
    )
    pad = source["<pad>"]
    settings = {
        "vocab_size": len(source), "decoder_vocab_size": len(target), "pad_token_id": pad, "eos_token_id": 0,
        "decoder_start_token_id": pad, "forced_eos_token_id": 0, "d_model": 32, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "max_position_embeddings": 128, "activation_function": "swish",
        "scale_embedding": True, "dropout": 0.1, **shape.config,
    }  # fmt: skip
    if shape.config.get("d_model") == 30:
        settings["decoder_attention_heads"] = 6
    torch.manual_seed(seed)
    config = MarianConfig(**settings)
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name and not shape.updates:
                parameter.add_(torch.randn_like(parameter) * (0.05 if parameter.dim() == 1 else 0.15))
        if shape.bias:
            model.final_logits_bias.normal_()
        if settings.get("tie_word_embeddings") is False and config.share_encoder_decoder_embeddings:
            for side in (model.model.encoder, model.model.decoder):
                side.embed_tokens.weight.copy_(model.model.shared.weight)
    if shape.updates:
        _train(model, folder, shape.updates)
    generation = {
        "bad_words_ids": [[pad]], "num_beams": 4, "max_length": 60, "renormalize_logits": True, "pad_token_id": pad,
        "decoder_start_token_id": settings["decoder_start_token_id"], "eos_token_id": 0, "forced_eos_token_id": 0,
        **shape.generation,
    }  # fmt: skip
    model.generation_config = GenerationConfig(**{key: value for key, value in generation.items() if value is not None})
    model.save_pretrained(folder)
    if shape.pickled:
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


@torch.enable_grad()
def _train(model: Any, folder: Path, updates: int) -> None:
    from transformers import MarianTokenizer

    tokenizer = MarianTokenizer.from_pretrained(folder)
    pairs = sorted(zip(lines("de", 1500), lines("en", 1500), strict=True), key=lambda pair: len(pair[0]))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(updates):
        chosen = pairs[int(torch.randint(len(pairs) - 32, ())) :][:32]
        x = tokenizer([source for source, _ in chosen], return_tensors="pt", padding=True)
        y = tokenizer(text_target=[target for _, target in chosen], return_tensors="pt", padding=True).input_ids
        model(**x, labels=y.masked_fill(y == tokenizer.pad_token_id, -100)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
