"""A configuration for a user's own files, and what is held out of them to measure by."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from nmt.config.structure import parse_document, validate
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.data.config import CorpusConfig
from nmt.data.splitting import Held, Survey, survey, write_parts
from nmt.data.whole_folder import locked, made_whole
from nmt.experiment import Experiment
from nmt.workflows.first_config import config_text, size_for

MOST_HELD_OUT = 1000
"""Pairs of a part where the user names no number; of a small corpus a twentieth."""


@dataclass(frozen=True)
class Parts:
    """What the user has, and how many pairs they want of what they have not; None: as many as suit the corpus."""

    train: CorpusConfig
    valid: CorpusConfig | None
    test: CorpusConfig | None
    valid_pairs: int | None = None
    test_pairs: int | None = None

    @property
    def given(self) -> dict[str, CorpusConfig]:
        """The parts that are files of the user's."""
        return {name: each for name, each in (("valid", self.valid), ("test", self.test)) if each is not None}

    @property
    def wanted(self) -> dict[str, int | None]:
        """The parts to hold out of the training pairs."""
        both = (("valid", self.valid, self.valid_pairs), ("test", self.test, self.test_pairs))
        return {name: count for name, given, count in both if given is None and count != 0}


def begin(name: str, parts: Parts, *, seed: int, cuda: bool) -> Path:
    """Writes a configuration for a corpus, ``NAME.yaml``, and where parts are to be held out, all parts to
    ``data/NAME``. Returns the configuration. Raises InputError for files that are no corpus, and for what would be
    overwritten."""
    path, run, folder = _places(name)
    most = sum(MOST_HELD_OUT if count is None else count for count in parts.wanted.values())
    found = survey(parts.train, most=most, seed=seed, known=parts.given.values())
    corpora: dict[str, CorpusConfig] = {"train": parts.train, **parts.given}
    held = Held(found.pairs, {}, 0)
    if parts.wanted:
        held, written = _hold_out(parts, found, folder, seed)
        corpora |= written
    ordered: dict[str, CorpusConfig] = {part: corpora[part] for part in ("train", "valid", "test") if part in corpora}
    text = config_text(
        path=path, run=str(run), found=found, train_pairs=held.train, corpora=ordered, cuda=cuda, seed=seed
    )
    validate(Experiment, parse_document(text, str(path)))
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
    _tell(path, folder, found.pairs, held, cuda=cuda)
    return path


def _hold_out(parts: Parts, found: Survey, folder: Path, seed: int) -> tuple[Held, dict[str, CorpusConfig]]:
    """Writes the training pairs and what is held out of them to a new folder; returns what became of the pairs, and the
    parts."""
    if folder.exists():
        raise InputError(f"{folder}: is there already; give another NAME, or delete it")
    counts = _counts(parts, found.pairs)
    if sum(counts.values()) + (not found.others) > len(found.candidates):
        raise InputError(
            f"{parts.train.name}: too few different pairs ({len(found.candidates)}) to hold out "
            f"{', '.join(f'{count} as {part}' for part, count in counts.items())}, and train on others; ask for "
            "fewer with --valid-pairs and --test-pairs, or give files of their own, --valid-source and so on"
        )
    hashes, taken = {}, 0
    for part, count in counts.items():
        hashes[part] = frozenset(found.candidates[taken : taken + count])
        taken += count
    files = {part: _files(parts.train, folder, part) for part in ("train", *counts)}
    with locked(folder), made_whole(folder) as partial:
        inside = {part: tuple(partial / path.name for path in paths) for part, paths in files.items()}
        held = write_parts(parts.train, inside, hashes, seed=seed)
    return held, {part: _corpus(paths) for part, paths in files.items()}


def _places(name: str) -> tuple[Path, Path, Path]:
    """The configuration, the run and the folder of the parts. Raises InputError where the first two are there."""
    path = Path(name if name.endswith((".yaml", ".yml")) else f"{name}.yaml").expanduser()
    stem = path.stem
    if stem[:1] in (" ", ".") or not stem.isprintable():
        raise InputError(f"NAME {name!r}: is no name for a configuration; give one such as de-en")
    if path.exists():
        raise InputError(f"{path}: is there already; give another NAME, or delete it")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written: there is no folder {path.parent}")
    run = Path("runs") / stem
    if run.exists():
        raise InputError(f"{run}: is there already, and would be the run of {path}; give another NAME, or delete it")
    return path, run, Path("data") / stem


def _counts(parts: Parts, pairs: int) -> dict[str, int]:
    usual = max(1, min(MOST_HELD_OUT, pairs // 20))
    return {part: usual if count is None else count for part, count in parts.wanted.items()}


def _files(corpus: CorpusConfig, folder: Path, part: str) -> tuple[Path, ...]:
    """Where a part is written to, with the endings that the files of the corpus have."""
    if corpus.pairs is not None:
        return (folder / f"{part}.tsv",)
    ends = []
    for file in corpus.files:
        suffixes = [each for each in file.suffixes if each not in (".gz", ".xz", ".txt")]
        ends.append(suffixes[-1] if suffixes else "")
    if "" in ends or ends[0] == ends[1]:
        ends = [".source", ".target"]
    return tuple(folder / f"{part}{end}" for end in ends)


def _corpus(files: tuple[Path, ...]) -> CorpusConfig:
    return CorpusConfig(pairs=files[0]) if len(files) == 1 else CorpusConfig(source=files[0], target=files[1])


def _tell(path: Path, folder: Path, pairs: int, held: Held, *, cuda: bool) -> None:
    rows = [("corpus", f"{pairs:,} pairs")]
    if held.held_out:
        parts = ", ".join(f"{count:,} to {_use(part)}" for part, count in held.held_out.items())
        repeats = f"; {held.repeats:,} repeats of these left out" if held.repeats else ""
        rows.append(("split", f"{held.train:,} pairs to train on, {parts}{repeats}: {folder}"))
    size = size_for(held.train, cuda=cuda)
    rows.append(("model", f"{size.name}, for {held.train:,} pairs on {'CUDA' if cuda else 'a CPU'}"))
    rows += [("wrote", str(path)), ("next", f"nmt train {shlex.quote(str(path))}")]
    log.info("\n".join(f"{label:<8}{text}" for label, text in rows))


def _use(part: str) -> str:
    return {"valid": "validate", "test": "test"}[part]
