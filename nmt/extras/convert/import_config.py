"""A configuration of another toolkit, written as one of ours."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from nmt.config.structure import validate
from nmt.config.yaml_source import Document, load_document, parse_document
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.experiment import Experiment
from nmt.extras.convert.from_joeynmt import from_joeynmt, is_joeynmt
from nmt.extras.convert.from_opennmt import from_opennmt, is_opennmt
from nmt.extras.convert.imported_config import ImportedConfig


def import_config(path: Path, *, toolkit: str, output: Path | None) -> None:
    """Writes a configuration of ``joeynmt`` or ``opennmt`` with the keys that have a counterpart, each with the
    original key; None stands for stdout. Keys without one are warned about, and listed at the end of the file. Raises
    InputError for a file of another kind, for an invalid result, and where ``output`` exists."""
    if output is not None and output.exists():
        raise InputError(f"--output {output}: is there already; give another name, or delete it")
    config = converted(load_document(path), toolkit, str(path))
    name = f"{path.name}, " if path.name.isprintable() else ""
    text = f"# From {name}a configuration of {config.name}. Written by nmt import.\n{config.yaml()}"
    validate(Experiment, config.document())
    validate(Experiment, parse_document(text, str(output or path)))
    if output is None:
        sys.stdout.write(text)
    else:
        try:
            with whole_file(output) as partial:
                partial.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"--output {output}: cannot be written: {error.strerror}") from None
    for mark, key, value in config.left():
        log.warning(f"{mark}: {key} ({value}) has no counterpart and is left out")
    if output is not None:
        log.info(f"wrote: {output}")
        log.info(f"next: nmt train {shlex.quote(str(output))}")


def converted(document: Document, toolkit: str, name: str) -> ImportedConfig:
    """Converts the keys of a toolkit's configuration that have a counterpart. Raises InputError for one of another
    toolkit."""
    if toolkit == "joeynmt" and is_joeynmt(document):
        return from_joeynmt(document)
    if toolkit == "opennmt" and is_opennmt(document):
        return from_opennmt(document)
    if "run" in document.tree:
        raise InputError(f"{name}: has the key run, as configurations of nmt have; use it as it is: nmt train {name}")
    marks = {
        "joeynmt": "JoeyNMT, which has sections data, training, model",
        "opennmt": "OpenNMT-py, which has data with path_src, and keys such as save_model",
    }
    raise InputError(f"{name}: is not of {marks[toolkit]}; write a configuration with nmt init")
