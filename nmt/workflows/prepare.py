"""Creates the prepared folder of a corpus, or finds that it is up to date.

The folder is created beside its path, synced to disk and renamed, so it is complete or does not exist.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.atomic_folder import locked, replace_folder
from nmt.data.config import DataConfig
from nmt.data.prepared import PreparedData, corpus_key, find, open_folder

if TYPE_CHECKING:
    from nmt.workflows.build_corpus import OpenRunner


def prepare(
    config: DataConfig, *, run: Path, seed: int, force: bool = False, cluster: OpenRunner | None = None
) -> PreparedData:
    """Creates the prepared folder, or finds that it is up to date: created from the same bytes with the same config.

    Any number of processes may call this for the same folder at once; one does the work.

    Args:
        config: The corpora, and the settings of their preparation.
        run: Run directory, whose `prepared` is the folder unless the config names one.
        seed: Seed of the draw of pairs from which subwords are learned, at least 0.
        force: Create it again in any case.
        cluster: Function that connects to machines that tokenise; None means threads of this process. The result is the
            same.

    Raises:
        InputError: The corpora or the config have a fault; the folder is then unchanged.
    """
    if config.imported is not None:
        raise InputError(
            f"data.imported: {config.imported.name} was trained elsewhere, and has no corpus to prepare; fine-tune "
            f"it on one with: nmt init NAME --from {run}"
        )
    folder = config.prepared or run / "prepared"
    folder = folder.resolve() if folder.is_symlink() else folder  # a link itself is not replaced
    key = corpus_key(config, seed)
    with locked(folder) as writable:
        if not force and (found := find(folder, key)):
            log.info(f"{folder}: up to date, nothing to do ({found.report.kept:,} pairs)")
            return found
        if not writable:
            raise InputError(f"data.prepared: {folder} has to be made again but its parent is read-only; name another")
        if folder.exists() and not (folder / "state.json").is_file() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"data.prepared: {folder} is not a prepared corpus; name another folder, or remove it")
        from nmt.workflows.build_corpus import build, tokenising

        try:
            with tokenising(config, cluster) as tokenise, replace_folder(folder) as partial:
                report = build(config, seed, partial, tokenise)
                (partial / "report.json").write_text(report.model_dump_json(indent=1) + "\n", encoding="utf-8")
                (partial / "state.json").write_text(json.dumps({"key": key}) + "\n", encoding="utf-8")
        except OSError as error:  # errors of reading are InputErrors by now
            raise InputError(f"data.prepared: {folder} cannot be written: {error.strerror or error}") from error
        from nmt.data.report import report_table

        for line in report_table(report):
            log.info(line)
        log.info(f"{folder}: prepared {report.kept:,} of {report.pairs:,} pairs")
        return open_folder(folder, key, reused=False)
