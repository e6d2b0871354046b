"""Finds the run or checkpoint that a user names, also in an archive that `nmt export --to nmt` has written. This module
does not import torch, so that a wrong name is reported at once."""

from __future__ import annotations

import os
import re
import shlex
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from nmt import experiment as experiments
from nmt.core.errors import InputError
from nmt.core.files import content_hash, replace_file
from nmt.data.atomic_folder import locked, replace_folder
from nmt.experiment import Experiment
from nmt.training import run_directory

RUNS = Path("runs")
"""Folder of the runs among which the last one is found without a name."""

ALIGNER, LAYER = "aligner.safetensors", "alignment_layer.safetensors"
"""Files of ``nmt aligner`` in a run directory."""
CONFIDENCE, NUMBER_FORMATS = "confidence.json", "number-formats.json"
"""The file of ``nmt calibrate``, and that of ``nmt train`` with the formats of numbers."""

EXPORTED = "exported"
"""Folder of ``nmt export`` in a run directory, with a subfolder for each format."""

ORDER = ".order"
"""File with a number; a run that was trained later than another one beside it has a larger number."""

PACKED = re.compile(
    r"[^/]+/([^/]+\.(yaml|json|model|safetensors|md)|checkpoints/[^/]+/(.+\.(safetensors|json)|SHA256SUMS))"
)
"""Files of a run directory that are read from an archive; the weights, its largest part, are hardly compressible."""

MOST_PACKED = 20
"""Maximum size of the files, as a multiple of the size of the archive, so that a malicious archive cannot fill the
disk."""


def find_checkpoint(model: str | Path | None, overrides: Sequence[str] = ()) -> Path:
    """Finds the checkpoint folder that a user names; see ``nmt.translator.loading.load_trained``."""
    run = find(model, overrides)
    if is_checkpoint(run):
        return run
    for name in ("best", "latest"):
        if (run / name).exists():
            if (run / name).is_file():
                raise InputError(
                    f"{run / name}: is a file, not a link: what has copied or unpacked {run} keeps no links; name the "
                    "checkpoint that is meant, or link it as what the file says"
                )
            if run_of(run / name) != run.resolve():
                raise InputError(f"{run / name}: leads out of {run}; name the checkpoint that is meant")
            return run / name
    if (last := newest(run)) is None:
        raise InputError(f"{run}: holds no checkpoint yet; train it with nmt train {run / experiments.FILE}")
    return last


def find(model: str | Path | None, overrides: Sequence[str] = ()) -> Path:
    """Finds the run directory or checkpoint folder that a user names. Raises InputError if it does not exist, or if a
    newer release has written it."""
    path = _last_run() if model is None else Path(model).expanduser()
    if path.is_dir():
        if not is_checkpoint(path) and not (path / experiments.FILE).exists():
            raise InputError(f"{path}: is neither a run directory (it has no {experiments.FILE}) nor a checkpoint")
        if is_checkpoint(path) and not (run_of(path) / experiments.FILE).exists():
            raise InputError(f"{path}: is a checkpoint outside its run directory, whose {experiments.FILE} it needs")
    elif not path.is_file():
        raise InputError(f"{path}: no such run directory, checkpoint or config")
    elif path.suffix == ".zip":
        path = unpack(path)
    elif path.suffix in (".yaml", ".yml"):
        config, path = path, experiments.load(path, overrides).folder
        if not (path / experiments.FILE).exists():
            raise InputError(f"{config}: its run {path} has not been trained yet; nmt train {config}")
    else:
        raise InputError(f"{path}: name a run directory, a checkpoint folder, a config (.yaml) or an archive (.zip)")
    checkpoint = path if is_checkpoint(path) else newest(path)
    if checkpoint is not None:
        run_directory.refuse_newer(checkpoint)
    return path


def unpack(archive: Path) -> Path:
    """Returns the run directory of an archive that `nmt export --to nmt` has written. It is unpacked once, into the
    user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "nmt"
    folder = cache / content_hash(archive).hex()[:16]
    with locked(folder):
        try:
            if not folder.exists():
                with zipfile.ZipFile(archive) as file, replace_folder(folder) as unfinished:
                    entries = [entry for entry in file.infolist() if PACKED.fullmatch(entry.filename)]
                    if sum(entry.file_size for entry in entries) > MOST_PACKED * archive.stat().st_size:
                        raise zipfile.BadZipFile("it is far larger unpacked")
                    file.extractall(unfinished, entries)  # which lets no name lead out of the folder
        except (OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(f"{archive}: cannot be unpacked: {error}") from None
    found = sorted(folder.glob(f"*/{experiments.FILE}"))
    if len(found) != 1:
        raise InputError(f"{archive}: holds no model; make one with nmt export --to nmt --output {archive}")
    return found[0].parent


def newest(run: Path) -> Path | None:
    """Finds the newest complete checkpoint of a run, or an average if the run was passed on with that only."""
    return run_directory.latest_checkpoint(run) or next(reversed(run_directory.average_paths(run)), None)


def is_checkpoint(path: Path) -> bool:
    """Returns True for a folder, or a link to one, that is a checkpoint or an average of checkpoints."""
    return (path / run_directory.MODEL).exists()


def run_of(checkpoint: Path) -> Path:
    """Returns the run directory of a checkpoint."""
    return checkpoint.resolve().parent.parent


def shell_argument(model: str | None, checkpoint: Path) -> str:
    """Returns a name of the model for the next command, as a shell argument; ``model`` is the name from which the user
    has got this checkpoint."""
    is_model = model is not None and (model.endswith(".zip") or Path(model).expanduser().is_dir())
    return shlex.quote(model if model is not None and is_model else str(run_of(checkpoint)))


def record_last_run(run: Path) -> None:
    """Marks this run as trained after all runs beside it, by a number larger than theirs. Times are not used, because a
    clock may be set back."""
    folder = run.absolute()
    others = max((_order(note.parent) for note in folder.parent.glob(f"*/{ORDER}") if note.parent != folder), default=0)
    if _order(run) <= others:
        replace_file(run / ORDER, f"{others + 1}\n")


def _order(run: Path) -> int:
    try:
        return int((run / ORDER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0


def _last_run() -> Path:
    runs = [file.parent for file in RUNS.glob(f"*/{experiments.FILE}") if newest(file.parent) is not None]
    if not runs:
        raise InputError(f"no trained model under {RUNS}/; train one with nmt train, or name a run directory")
    last = max(map(_order, runs))
    runs = sorted(run for run in runs if _order(run) == last)
    if len(runs) > 1:
        raise InputError(f"{RUNS}/: cannot be told which of {', '.join(map(str, runs))} was trained last; name one")
    return runs[0]


def validate_model(model: str | Path | None, overrides: Sequence[str] = (), *, needs_language: bool = False) -> None:
    """Raises InputError for a model that does not exist, for faults in the config of its run, and for a target language
    that it does not have or, with ``needs_language``, that is not chosen. It does so before torch is imported."""
    checkpoint = find_checkpoint(model, overrides)
    experiment = experiments.load(run_of(checkpoint) / experiments.FILE, overrides)
    if needs_language or experiment.search.to is not None:
        target_language(experiment, checkpoint)


def target_language(experiment: Experiment, checkpoint: Path) -> str | None:
    """Returns the language that a model translates into: ``search.to``, or its only one; None for a model whose corpora
    have no languages. Raises InputError for an unknown language, and if several are possible and none is chosen."""
    to, languages = experiment.search.to, experiment.data.target_languages
    run = checkpoint.parent if checkpoint.name in ("best", "latest", "averaged") else run_of(checkpoint)
    if not languages and to is not None:
        raise InputError(f"--to {to}: {run} was trained on corpora without languages; leave it out")
    if to is None and len(languages) > 1:
        raise InputError(f"{run} translates into {', '.join(languages)}: choose one with --to LANGUAGE")
    if to is not None and to not in languages:
        raise InputError(f"--to {to}: {run} translates into {', '.join(languages)}")
    return to or next(iter(languages), None)
