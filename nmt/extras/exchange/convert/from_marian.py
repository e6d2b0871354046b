"""Conversion of a MarianMT model to a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from nmt import experiment as experiments
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_special
from nmt.core.meta_init import on_meta_device, without_init
from nmt.data.atomic_folder import locked, replace_folder
from nmt.data.config import DataConfig, FiltersConfig, ImportedConfig, SubwordsConfig
from nmt.experiment import Experiment
from nmt.extras.exchange.convert import marian
from nmt.extras.exchange.convert.hub import folder_of
from nmt.extras.exchange.convert.marian_folder import MarianFolder, Settings, read_folder, shown
from nmt.models.config import ModelConfig
from nmt.models.seq2seq import Seq2Seq
from nmt.models.transformer.config import TransformerDecoderConfig, TransformerEncoderConfig
from nmt.nn.config import DropoutConfig, EmbeddingConfig
from nmt.nn.positions import sinusoid_halves
from nmt.search.config import SearchConfig
from nmt.training import checkpoint as checkpoints
from nmt.training import run_directory
from nmt.translator.find_run import record_last_run
from nmt.translator.loading import build_model
from nmt.translator.manifest import CheckpointManifest

_NO_EFFECT = {
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "diversity_penalty": 0.0,
    "num_beam_groups": 1,
    "num_return_sequences": 1,
    "encoder_no_repeat_ngram_size": 0,
    "do_sample": False,
    "remove_invalid_values": False,
    "early_stopping": False,
}
"""Values at which search keys that nmt does not have, or has in another form, have no effect."""

_SEARCH = (
    "max_new_tokens", "min_new_tokens", "forced_bos_token_id", "suppress_tokens", "begin_suppress_tokens",
    "sequence_bias", "exponential_decay_length_penalty", "penalty_alpha", "force_words_ids", "stop_strings",
    *_NO_EFFECT,
)  # fmt: skip
"""Search keys that are not converted."""


def import_hf(source: Path, run: Path) -> None:
    """Converts a MarianMT model, a folder or OWNER/NAME of the Hugging Face Hub, to a run. Raises InputError, which
    names file and key, for settings that cannot be converted, and if ``run`` exists."""
    there = InputError(f"--run {run}: is there already; give another name, or delete it")
    if run.exists():
        raise there
    found = read_folder(folder_of(source), name=source.resolve().name if source.exists() else source.as_posix())
    experiment, model = load_folder(found, run)
    with locked(run):
        if run.exists():  # another import has created it meanwhile
            raise there
        with replace_folder(run) as unfinished:
            found.tokenizers.save(unfinished)
            experiments.save(experiment, unfinished / experiments.FILE)
            final = run_directory.checkpoint_path(unfinished, 0)
            manifest = CheckpointManifest.of(experiment, None).model_dump(mode="json")
            state = {"vocabulary": found.tokenizers.fingerprint, "manifest": manifest, "update": 0}
            checkpoints.write(final, {run_directory.MODEL: checkpoints.named_weights(model)}, state)
            for link in ("latest", "best"):
                run_directory.set_link(unfinished, link, final)
        record_last_run(run)
    for key in _SEARCH:
        if (value := found.generation.tree.get(key)) is not None and value != _NO_EFFECT.get(key):
            log.warning(f"{found.generation.path}: {key} ({shown(value)}) has no counterpart and is left out")
    log.info(f"wrote: {run}")
    to = " --to LANGUAGE" if len(experiment.data.target_languages) > 1 else ""
    log.info(f"next: nmt translate {shlex.quote(str(run))}{to} --input FILE --output TRANSLATION")


def load_folder(found: MarianFolder, run: Path) -> tuple[Experiment, Seq2Seq[Any, Any]]:
    """Loads the configuration and the model of a folder, on the CPU in float32. Raises InputError like
    ``import_hf``."""
    experiment = _experiment(found, run)
    weights, path = _weights(found)
    for side, layers in (("encoder", experiment.model.encoder), ("decoder", experiment.model.decoder)):
        assert isinstance(layers, TransformerEncoderConfig | TransformerDecoderConfig)
        if (last := f"model.{side}.layers.{layers.layers - 1}.fc1.weight") not in weights:
            raise InputError(f"{path}: has no {last}, and {found.config.path} says {layers.layers} {side}_layers")
    with on_meta_device():
        shapes = checkpoints.named_weights(build_model(experiment.model, found.tokenizers))
    ours = _converted(found, weights, path, {name: weight.shape for name, weight in shapes.items()})
    with without_init():
        model = build_model(experiment.model, found.tokenizers)
    checkpoints.fill(model, ours, path)
    return experiment, model


# ------------------------------------------------------------------------------------------------ configuration


def _experiment(found: MarianFolder, run: Path) -> Experiment:
    config = found.config
    for key, value in {**marian.FIXED, "add_bias_logits": False}.items():
        config.only(key, value)
    config.only("hidden_act", config.tree.get("activation_function"))
    width = config.whole("d_model")
    positions = config.whole("max_position_embeddings", least=4, most=1 << 24)
    tied = config.flag("tie_word_embeddings", default=True)
    activation = config.text("activation_function")
    if activation not in marian.ACTIVATIONS:
        known = ", ".join(marian.ACTIVATIONS)
        raise config.fault("activation_function", f"{shown(activation)} cannot be converted, only {known} can")
    sides: dict[str, dict[str, Any]] = {}
    for side in ("encoder", "decoder"):
        heads = config.whole(f"{side}_attention_heads")
        if width % heads:
            raise config.fault(f"{side}_attention_heads", f"{heads} must divide d_model, which is {width}")
        sides[side] = {
            **{ours: config.whole(f"{side}_{theirs}") for theirs, ours in marian.SIDE.items()},
            "layers": config.whole(f"{side}_layers", most=1000),
            "size": width,
            "activation": marian.ACTIVATIONS[activation],
            "scale_embedding": config.flag("scale_embedding", default=False),
            **marian.FIXED_SIDE,
        }
    dropout = {"embedding": config.number("dropout", most=0.99)}
    dropout |= {ours: config.number(theirs, most=0.99) for theirs, ours in marian.DROPOUT.items()}
    model = ModelConfig(
        embedding=EmbeddingConfig(size=width, tie="none" if not tied else "all" if found.is_shared else "output"),
        encoder=TransformerEncoderConfig(**sides["encoder"]),
        decoder=TransformerDecoderConfig(**sides["decoder"]),
        dropout=DropoutConfig.model_validate(dropout),
    )
    name, languages = config.tree.get("_name_or_path"), tuple(sorted(found.vocabularies["encoder"].languages))
    name = name if isinstance(name, str) and name.strip(". /") else found.name
    name = name if name.isprintable() else ascii(name)
    imported = ImportedConfig(name=name, languages=languages, licence=_licence(found))
    subwords = SubwordsConfig(model=run, joint=found.tokenizers.joint)
    filters = FiltersConfig(max_length=positions - 1)
    data = DataConfig(imported=imported, train=(), subwords=subwords, filters=filters)
    return Experiment(run=str(run), data=data, model=model, search=_search(found.generation, positions, found))


def _search(generation: Settings, positions: int, found: MarianFolder) -> SearchConfig:
    """Builds the search section. The limits of length are those of the folder: of positions, and of tokens including
    the first and the last one."""
    words = generation.tree.get("bad_words_ids")
    generation.only("bad_words_ids", [[found.vocabularies["decoder"].pad]])
    suppress = None
    if words is not None:
        suppress = "renormalized" if generation.flag("renormalize_logits", default=False) else "plain"
    longest = min(generation.whole("max_length", least=3, most=1 << 24, default=positions), positions)
    return SearchConfig(
        beam=generation.whole("num_beams", most=1000, default=1),
        length_penalty=generation.number("length_penalty", most=100, default=1.0),
        length_normalization="average",
        min_length=max(generation.whole("min_length", least=0, most=longest - 2, default=0) - 1, 0),
        max_length=longest - 2,
        max_length_ratio=100.0,
        no_repeat=generation.whole("no_repeat_ngram_size", least=0, most=1_000_000, default=0),
        repetition_margin=None,
        suppress_padding=suppress,  # type: ignore[arg-type]
        max_source_tokens=positions - 2 if found.vocabularies["encoder"].languages else positions - 1,
    )


def _licence(found: MarianFolder) -> str | None:
    """Returns the licence that the head of the model card names."""
    path = found.path / marian.CARD
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", errors="replace") as file:
        head = re.match(r"---\n((?:(?!---$).*\n)*)---$", file.read(1 << 16), re.MULTILINE)
    names = re.findall("^license:(.*)$", head[1], re.MULTILINE) if head else []
    return next((name for each in names if (name := each.strip(" \"'")) and name.isprintable()), None)


# ------------------------------------------------------------------------------------------------------ weights


def _weights(found: MarianFolder) -> tuple[dict[str, Tensor], Path]:
    """Reads all tensors of a folder by their names there. Raises InputError for a file that is missing or damaged, or
    holds anything else."""
    paths = [found.path / name for name in (marian.WEIGHTS, marian.PICKLED)]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        raise InputError(f"{found.path}: has neither {marian.WEIGHTS} nor {marian.PICKLED}")
    refuse_special(path)
    try:
        if path.name == marian.WEIGHTS:
            loaded = safetensors.torch.load_file(path)
        else:  # the restricted reader creates tensors, numbers and texts: nothing in the file is executed
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged archive fails in many ways
        raise InputError(f"{path}: cannot be read, it is damaged or holds more than weights: {error}") from None
    if not isinstance(loaded, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in loaded.items()
    ):
        raise InputError(f"{path}: holds no tensors by their names")
    return loaded, path


def _converted(
    found: MarianFolder, weights: dict[str, Tensor], path: Path, shapes: Mapping[str, torch.Size]
) -> dict[str, Tensor]:
    """Converts the weights to nmt's names, float32 and order of rows. Raises InputError if the weights in the file do
    not fit the configuration."""
    unread = set(weights)

    def take(name: str, shape: tuple[int, ...]) -> Tensor:
        unread.discard(name)
        if (tensor := weights.get(name)) is None:
            raise InputError(f"{path}: has no {name}, which a model of {found.config.path} has")
        if tuple(tensor.shape) != shape or not tensor.is_floating_point():
            raise InputError(
                f"{path}: {name} is {tuple(tensor.shape)} of {tensor.dtype}, and {found.config.path} makes it {shape} "
                "of floating-point numbers"
            )
        return tensor.to("cpu", torch.float32)

    width = found.config.whole("d_model")
    sizes = {side: (len(vocabulary.pieces), width) for side, vocabulary in found.vocabularies.items()}
    tables = dict(marian.TABLES)
    if found.is_shared:  # the embeddings may be stored under several names
        first, *others = [name for name in (marian.SHARED, *tables.values()) if name in weights] or [marian.SHARED]
        tables = dict.fromkeys(tables, first)
        for other in others:
            if not torch.equal(take(first, sizes["encoder"]), take(other, sizes["encoder"])):
                raise InputError(f"{found.path}: {other} differs from {first}, and both are the shared embeddings")
    ours: dict[str, Tensor] = {}
    for name, shape in shapes.items():
        theirs, side = marian.counterpart(name)
        if side is None:
            ours[name] = take(theirs, shape)
            continue
        if theirs != marian.BIAS:
            rows = take(tables[side] if theirs == marian.TABLES[side] else theirs, sizes[side])
        else:
            rows = take(theirs, (1, *shape))[0] if theirs in weights else torch.zeros(shape)
        ours[name] = rows[torch.tensor(found.vocabularies[side].order)]
    if marian.HEAD in unread and not torch.equal(
        take(marian.HEAD, sizes["decoder"]), take(tables["decoder"], sizes["decoder"])
    ):
        raise InputError(f"{path}: {marian.HEAD} differs from the embeddings, and tie_word_embeddings makes them one")
    for side, name in marian.POSITIONS.items():
        if name not in weights:
            continue
        count = weights[name].shape[0] if weights[name].dim() == 2 else 0
        stored, sinusoids = take(name, (count, width)), sinusoid_halves(torch.arange(count)[None], width)[0]
        if count > 1 << 16 or not torch.allclose(stored, sinusoids, atol=2e-3):  # some models are in half precision
            raise InputError(f"{path}: {name} holds other positions than sinusoids; the {side} cannot be converted")
    if unread:
        raise InputError(f"{path}: has {min(unread)}, which no MarianMT model of {found.config.path} has")
    return ours
