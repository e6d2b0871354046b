"""Export of a Transformer with Marian's architecture to a MarianMT folder, which Hugging Face's transformers loads."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.batching import TokenIds
from nmt.data.imported import ImportedVocabulary, split
from nmt.data.subword_model import ModelKind, read_model
from nmt.data.tokenizer import Tokenizer
from nmt.data.vocabulary import BOS, EOS, PAD, UNK
from nmt.experiment import Experiment
from nmt.extras.exchange.convert import marian
from nmt.extras.exchange.convert.from_marian import load_folder
from nmt.extras.exchange.convert.marian_folder import read_folder
from nmt.extras.exchange.export.limits import TRANSFORMERS, check_limits
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from nmt.training import checkpoint as checkpoints
from nmt.translator.find_run import run_of
from nmt.translator.loading import TrainedModel, for_inference


def check(experiment: Experiment) -> None:
    """Raises InputError, with the key, for a model that is not of Marian's architecture."""
    model, data = experiment.model, experiment.data
    check_limits(model, "MarianMT", TRANSFORMERS, others="onnx")
    decoder: Any = model.decoder
    side = {**marian.FIXED_SIDE, "size": model.embedding.size, "score": "scaled_dot"}
    limits: dict[str, Collection[object]] = {
        **{f"{name}.{key}": [value] for name in ("encoder", "decoder") for key, value in side.items()},
        "decoder.activation": marian.ACTIVATIONS,
        **{f"encoder.{key}": [getattr(decoder, key)] for key in ("activation", "scale_embedding")},
        "encoder.causal": [False],
        "copying": [None],
        "attention.score": ["scaled_dot"],
        "attention.weights": ["softmax"],
        "attention.weights.temperature": [1.0],
    }
    check_limits(model, "MarianMT", limits, others="ctranslate2 or onnx")
    if data.context:
        raise InputError(f"data.context: MarianMT reads one sentence, not {data.context} before it; use --to onnx")


def save(trained: TrainedModel, folder: Path) -> Mapping[str, object]:
    """Writes a model in float32, whose configuration has passed ``check``, into an empty folder. An imported model gets
    back the ids and the SentencePiece models that it came with. Raises InputError for subwords of whole words."""
    source, target = _vocabulary(trained.tokenizers.source), _vocabulary(trained.tokenizers.target)
    for side, name, tokenizer in (
        ("source", marian.SOURCE, trained.tokenizers.source),
        ("target", marian.TARGET, trained.tokenizers.target),
    ):
        model = tokenizer.model if tokenizer.imported is None else split(tokenizer.model)[1]
        if read_model(model).kind is ModelKind.WORD:
            raise InputError(f"data.subwords.kind: word: the {side} is cut into whole words, which MarianMT cannot do")
        (folder / name).write_bytes(model)
    is_separate = source != target
    _write(folder / marian.VOCABULARY, {piece: number for number, piece in enumerate(source.pieces)})
    if is_separate:
        _write(folder / marian.TARGET_VOCABULARY, {piece: number for number, piece in enumerate(target.pieces)})
    weights = _weights(trained, {"encoder": source, "decoder": target})
    safetensors.torch.save_file(weights, folder / marian.WEIGHTS, metadata={"format": "pt"})
    special = {f"{name}_token_id": getattr(target, name) for name in ("pad", "eos")}
    special["decoder_start_token_id"] = target.start
    most = trained.experiment.data.filters.max_length + 1
    positions = most if trained.experiment.data.imported is not None else max(most, 512)
    _write(folder / marian.CONFIG, {**_config(trained.experiment, source, target, positions), **special})
    _write(folder / marian.GENERATION, {**_generation(trained, target, positions), **special})
    languages = _languages(trained.experiment)
    tokenizer_config = {
        "tokenizer_class": "MarianTokenizer",
        **{f"{name}_token": target.pieces[getattr(target, name)] for name in ("pad", "unk", "eos")},
        "model_max_length": positions,
        "separate_vocabs": is_separate,
        **({} if languages is None else dict(zip(("source_lang", "target_lang"), languages, strict=True))),
    }
    _write(folder / marian.TOKENIZER, tokenizer_config)
    targets = trained.experiment.data.target_languages
    token = f", with a token such as >>{targets[0]}<< before each text" if targets else ""
    use = f"It is loaded as `MarianMTModel` and `MarianTokenizer` of transformers{token}."
    (folder / marian.CARD).write_text(card(trained, "transformers", use), encoding="utf-8")
    return {}


def greedy(trained: TrainedModel, folder: Path, sources: TokenIds, search: SearchConfig) -> list[tuple[int, ...]]:
    """Translates sources with the model that is read back from a folder."""
    _, model = load_folder(read_folder(folder), folder)
    for name, weight in checkpoints.named_weights(model).items():
        assert torch.equal(weight, checkpoints.named_weights(trained.model)[name]), name
    engine = TorchEngine(for_inference.body(model, trained.compute), trained.compute)
    return [best.tokens for (best,) in engine.translate_ids(sources, search)]


def _vocabulary(tokenizer: Tokenizer) -> ImportedVocabulary:
    """Returns the vocabulary of a tokenizer, with Marian's names of languages."""
    if tokenizer.imported is not None:
        return tokenizer.imported
    language_of = {number: f">>{language}<<" for language, number in tokenizer.languages.items()}
    pieces = [language_of.get(number, piece) for number, piece in enumerate(tokenizer.pieces(range(tokenizer.size)))]
    return ImportedVocabulary(tuple(pieces), pad=PAD, unk=UNK, eos=EOS, start=BOS)


def _weights(trained: TrainedModel, vocabularies: Mapping[str, ImportedVocabulary]) -> dict[str, Tensor]:
    is_shared = trained.experiment.model.embedding.tie == "all"
    weights: dict[str, Tensor] = {}
    for ours, weight in checkpoints.named_weights(trained.model).items():
        theirs, side = marian.counterpart(ours)
        if is_shared and theirs in marian.TABLES.values():
            theirs = marian.SHARED
        if side is not None:
            rows = torch.empty_like(weight)
            rows[torch.tensor(vocabularies[side].order)] = weight
            weight = rows[None] if theirs == marian.BIAS else rows
        weights[theirs] = weight.contiguous()
    return weights


def _config(
    experiment: Experiment, source: ImportedVocabulary, target: ImportedVocabulary, positions: int
) -> dict[str, Any]:
    model, tie = experiment.model, experiment.model.embedding.tie
    encoder: Any = model.encoder
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "vocab_size": len(source.pieces),
        "decoder_vocab_size": len(target.pieces),
        "share_encoder_decoder_embeddings": tie == "all",
        "tie_word_embeddings": tie != "none",
        "d_model": encoder.size,
        **{
            f"{side}_{theirs}": getattr(getattr(model, side), ours)
            for side in ("encoder", "decoder")
            for theirs, ours in marian.SIDE.items()
        },
        "activation_function": encoder.activation,
        "scale_embedding": encoder.scale_embedding,
        **marian.FIXED,
        "max_position_embeddings": positions,
        **{theirs: getattr(model.dropout, ours) for theirs, ours in marian.DROPOUT.items()},
        "is_encoder_decoder": True,
        "dtype": "float32",
    }


def _generation(trained: TrainedModel, target: ImportedVocabulary, positions: int) -> dict[str, Any]:
    search = trained.experiment.search
    if search.beam > 1 and search.penalty and search.length_normalization != "average":
        log.warning(f"search.length_normalization: {search.length_normalization}: transformers has average instead")
    longest = positions if search.max_length is None else min(search.max_length + 2, positions)
    options: dict[str, Any] = {
        "num_beams": search.beam,
        "length_penalty": search.penalty,
        "min_length": min(max(search.min_length, 1) + 1, longest),
        "max_length": longest,
        "forced_eos_token_id": target.eos,
    }
    if search.no_repeat:
        options["no_repeat_ngram_size"] = search.no_repeat
    if search.suppress_padding is not None or trained.tokenizers.target.imported is None:
        options["bad_words_ids"] = [[target.pad]]
        options["renormalize_logits"] = search.suppress_padding != "plain"
    return options


def _languages(experiment: Experiment) -> tuple[str, str] | None:
    return experiment.data.language_names if len(experiment.data.target_languages) < 2 else None


def card(trained: TrainedModel, library: str, use: str) -> str:
    """Writes the model card, with the facts that are known: use, data, figures, licence."""
    from nmt.workflows.info import inspect

    experiment, run, languages = trained.experiment, run_of(trained.checkpoint), _languages(trained.experiment)
    info = inspect(str(trained.checkpoint))
    imported = experiment.data.imported
    licence = None if imported is None else imported.licence
    head = ["---", *([] if languages is None else ["language:", *(f"- {language}" for language in languages)])]
    head += [*([] if licence is None else [f"license: {json.dumps(licence)}"]), f"library_name: {library}"]
    tag = "marian" if library == "transformers" else library
    head += ["pipeline_tag: translation", "tags:", "- translation", f"- {tag}", "---", ""]
    body = [
        f"# {run.name}",
        "",
        f"A translation model, exported by nmt from the checkpoint {trained.checkpoint.resolve().name}.",
        use,
        "",
        "## Data",
        "",
        *(f"- {name}" for name in info.corpus.files),
        *([] if info.corpus.kept is None else [f"- pairs that it was trained on: {info.corpus.kept:,}"]),
        "",
        "## Figures",
        "",
        f"- parameters: {info.parameters:,}",
    ]
    measured = next((each.figures for each in info.checkpoints if each.name == trained.checkpoint.resolve().name), {})
    body += [f"- {name} on the validation corpus: {value:.4g}" for name, value in measured.items()]
    body += ["", "## Licence", "", licence or "Not stated. State one before you publish this model.", ""]
    return "\n".join([*head, *body])


def _write(path: Path, tree: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(tree, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
