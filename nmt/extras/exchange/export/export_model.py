"""Exports a trained model for another engine, and loads the engine of an exported model."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import torch

from nmt import experiment as experiments
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import content_hash, whole_file, writing
from nmt.data.atomic_folder import locked, replace_folder
from nmt.data.batching import TokenIds, length_batches
from nmt.data.corpus import read_blocks
from nmt.data.vocabulary import EOS, PAD, UNK
from nmt.experiment import Experiment
from nmt.extras.exchange.export import ctranslate2, engine, marian, onnx, session
from nmt.extras.exchange.export.engine import ABOUT, CTranslate2Engine, export_folder, weights_hash
from nmt.extras.exchange.export.session import OnnxSession
from nmt.models.rnn.config import RNNEncoderConfig
from nmt.models.rnn.readers_config import ContextSourceConfig
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from nmt.search.scoring import max_lengths
from nmt.training import run_directory
from nmt.translator.find_run import ALIGNER, CONFIDENCE, LAYER, NUMBER_FORMATS, run_of
from nmt.translator.loading import TrainedModel, for_inference, load_trained
from nmt.translator.source_language import COUNTS

ExportFormat = Literal["ctranslate2", "onnx", "hf", "nmt"]

SAMPLE = 100
"""Number of sentences that are translated with the model and with its export."""

MIN_EQUAL = 0.9
"""Smallest share of equal translations. If the second best token is as probable as the best, the order of summation
decides."""

CARD = "README.md"


Greedy: TypeAlias = Callable[[TrainedModel, Path, TokenIds, SearchConfig], list[tuple[int, ...]]]


@dataclass(frozen=True)
class Format:
    """Functions that write models for another engine and translate with them.

    Attributes:
        use: The next step, for the user.
        required: Function that raises InputError if a package is missing.
        check: Function that raises InputError for an experiment whose model the engine cannot compute.
        save: Function that writes a model into an empty folder, and returns what this format adds to ``nmt.json``.
        greedy: Function that translates sources with an exported model; None if the export is the unchanged model.
    """

    use: str
    required: Callable[[], object]
    check: Callable[[Experiment], None]
    save: Callable[[TrainedModel, Path], Mapping[str, object]]
    greedy: Greedy | None


def _save_ctranslate2(trained: TrainedModel, folder: Path) -> Mapping[str, object]:
    ctranslate2.save(trained.model, trained.experiment.model, trained.tokenizers, folder)
    return {"files": {path.name: content_hash(path).hex() for path in sorted(folder.iterdir())}}


def _greedy_ctranslate2(
    trained: TrainedModel, folder: Path, sources: TokenIds, search: SearchConfig
) -> list[tuple[int, ...]]:
    written = CTranslate2Engine(folder, trained.tokenizers, device="cpu", precision="float32", workers=1)
    return [best.tokens for (best,) in written.translate_ids(sources, search)]


def _save_onnx(trained: TrainedModel, folder: Path) -> Mapping[str, object]:
    graphs, tokenizers = onnx.save(trained.model, folder), trained.tokenizers
    tokenizers.save(folder)
    sides = {"source": tokenizers.source, "target": tokenizers.target}
    is_one = tokenizers.source is tokenizers.target
    about: dict[str, object] = {
        "subwords": {side: "subwords.model" if is_one else f"subwords.{side}.model" for side in sides},
        "special": {"pad": PAD, "unk": UNK, "bos": tokenizers.target.begin, "eos": EOS},
    }
    if tokenizers.target.imported is not None:  # whose ids are not those of its SentencePiece models
        about["pieces"] = {side: each.pieces(range(each.size)) for side, each in sides.items()}
        about["suppressed"] = _suppressed(trained.experiment.search)
    heads = trained.model.decoder.head_names
    return {**about, "languages": tokenizers.source.languages, "heads": heads, **graphs}


def _suppressed(search: SearchConfig) -> list[int]:
    return [PAD] if search.suppress_padding else []


def _greedy_onnx(trained: TrainedModel, folder: Path, sources: TokenIds, search: SearchConfig) -> list[tuple[int, ...]]:
    begin = trained.tokenizers.target.begin
    written = OnnxSession(folder, threads=torch.get_num_threads(), begin=begin, suppressed=_suppressed(search))
    tokens: dict[int, tuple[int, ...]] = {}
    lengths = [len(source) + 1 for source in sources]
    # nmt's search keeps the last step for the end
    limits = (max_lengths(np.array(lengths), search.max_length_ratio, search.max_length) - 1).tolist()
    for rows in length_batches(lengths, search.batch_tokens):
        found = written.greedy([sources[row] for row in rows], [limits[row] for row in rows])
        tokens.update(zip(rows, found, strict=True))
    return [tokens[row] for row in range(len(sources))]


def _save_nmt(trained: TrainedModel, folder: Path) -> Mapping[str, object]:
    """Copies the files of a run that translation needs, with the changes of the configuration at loading, and a model
    card, which is that of the run if it has one."""
    checkpoint = trained.checkpoint.resolve()
    copied, run = folder / "checkpoints" / checkpoint.name, run_of(checkpoint)
    copied.mkdir(parents=True)
    use = "It is loaded by `nmt translate` and `nmt.load`, which need this folder or its archive alone."
    (folder / CARD).write_text(marian.card(trained, "nmt", use), encoding="utf-8")
    for name in (run_directory.LENGTHS, COUNTS, ALIGNER, LAYER, CONFIDENCE, NUMBER_FORMATS, CARD):
        if (run / name).exists():
            shutil.copy(run / name, folder)
    for name in (run_directory.MODEL, run_directory.STATE):
        shutil.copy(checkpoint / name, copied)
    run_directory.write_checksums(copied, (run_directory.MODEL, run_directory.STATE))
    experiments.save(trained.experiment, folder / experiments.FILE)
    trained.tokenizers.save(folder)
    return {}


_FORMATS: dict[ExportFormat, Format] = {
    "ctranslate2": Format(
        "use it with nmt translate --engine ctranslate2",
        engine.required,
        lambda experiment: ctranslate2.check(experiment.model),
        _save_ctranslate2,
        _greedy_ctranslate2,
    ),
    # ONNX can express all other models
    "onnx": Format(
        "docs/export.md tells how programs use it", session.required, lambda _: None, _save_onnx, _greedy_onnx
    ),
    "hf": Format(
        "transformers loads it, and so does nmt import hf", lambda: None, marian.check, marian.save, marian.greedy
    ),
    "nmt": Format("commands take it as MODEL; state a licence in its README.md", bool, lambda _: None, _save_nmt, None),
}


def export(model: str | None, overrides: Sequence[str], *, to: ExportFormat, output: Path | None) -> None:
    """Writes a model to a folder, by default ``exported/<format>`` in its run directory, and translates sentences of
    its validation corpus with both. An earlier export is replaced. Raises InputError for a model that the engine cannot
    compute and for a folder that holds anything else."""
    chosen = _FORMATS[to]
    chosen.required()
    # transformers gets weights that it can train further; tokens that are never chosen are in its own configuration
    prepare = (lambda trained, _: trained.requires_grad_(False).eval()) if to == "hf" else for_inference.body
    trained = load_trained(model, overrides, device="cpu", precision="float32", prepare=prepare)
    encoder, decoder = trained.experiment.model.encoder, trained.experiment.model.decoder
    if isinstance(decoder, ContextSourceConfig) and chosen.greedy is not None:
        raise InputError(f"model.decoder.kind: {decoder.kind} cannot be exported; rnn and transformer can")
    chosen.check(trained.experiment)
    is_deep = isinstance(encoder, RNNEncoderConfig) and (encoder.layer_norm or encoder.transitions > 0)
    if is_deep and chosen.greedy is not None:
        raise InputError("model.encoder: layer_norm and transitions cannot be exported, in the decoder alone they can")
    folder = output or export_folder(trained, to)
    save(trained, folder, to)
    files = folder.rglob("*.*") if folder.is_dir() else [folder]
    size = sum(file.stat().st_size for file in files) / 2**20
    log.info(f"wrote {folder} ({size:.1f} MiB)" + (f"; {chosen.use}" if output is None or to == "nmt" else ""))


def save(trained: TrainedModel, folder: Path, to: ExportFormat = "nmt") -> None:
    """Writes a model into a folder; for ``nmt`` also into an archive, if the name ends in .zip. Raises InputError for a
    folder that holds anything but an earlier export."""
    if folder.suffix == ".zip" and to == "nmt":
        with tempfile.TemporaryDirectory() as made:
            save(trained, Path(made) / folder.stem)
            made_archive = shutil.make_archive(f"{made}/archive", "zip", made, folder.stem)
            with writing(folder):
                folder.parent.mkdir(parents=True, exist_ok=True)
                with whole_file(folder) as archive:
                    shutil.move(made_archive, archive)
        return
    if folder.exists() and not (folder / ABOUT).exists():
        raise InputError(f"{folder}: is there and is not an export of ours; name another folder")
    with locked(folder), replace_folder(folder) as unfinished:
        about = {
            "format": to,
            "checkpoint": trained.checkpoint.resolve().name,
            "vocabulary": trained.tokenizers.fingerprint,
            "weights": weights_hash(trained),
            **_FORMATS[to].save(trained, unfinished),
        }
        (unfinished / ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        if (greedy := _FORMATS[to].greedy) is not None:
            _compare(trained, unfinished, greedy)


def _compare(trained: TrainedModel, folder: Path, greedy: Greedy) -> None:
    sources = _sample(trained)
    kept = trained.experiment.search.model_dump(include={"batch_tokens", "max_length", "suppress_padding"})
    search = SearchConfig(beam=1, repetition_margin=None, **kept)
    own = TorchEngine(trained.model, trained.compute).translate_ids(sources, search)
    theirs = greedy(trained, folder, sources, search)
    same = sum(ours.tokens == other for (ours,), other in zip(own, theirs, strict=True))
    log.info(f"{same} of {len(sources)} sentences are translated alike, greedily, in float32")
    if same < MIN_EQUAL * len(sources):
        raise RuntimeError(f"the exported model translates only {same} of {len(sources)} sentences as ours does")


def _sample(trained: TrainedModel) -> list[list[int]]:
    """Returns sentences of the first validation corpus or, if it no longer exists, random subwords."""
    data, source = trained.experiment.data, trained.tokenizers.source
    texts: Sequence[str] = ()
    languages = [corpus.target_language for corpus in data.valid_corpora] or [*data.target_languages, None]
    trained = trained.to(languages[0])
    if data.valid_corpora:
        try:
            texts = next((block.sources for block in read_blocks(data.valid_corpora[0], SAMPLE)), ())
        except InputError as error:
            log.info(f"compared on random subwords: {error}")
    if encoded := [tokens for tokens in map(source.encode, texts) if tokens]:
        return trained.prefixed(encoded)
    random = np.random.default_rng(1)
    lengths = random.integers(1, 30, SAMPLE)
    return trained.prefixed(random.integers(EOS + 1, source.size, length).tolist() for length in lengths)
