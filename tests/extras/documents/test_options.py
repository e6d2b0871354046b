"""``--glossary`` of ``nmt translate`` and ``nmt evaluate``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

import nmt as package
from nmt.core.errors import InputError
from nmt.extras.documents.glossary import Glossary
from nmt.extras.documents.terminology import with_glossary
from tests.workflows.runs import error, loaded, nmt, refused


def test_what_does_not_go_with_terms_is_refused(folder: Path) -> None:
    terms = (folder / "terms.tsv").read_text()
    for arguments, message in (
        (["--engine", "ctranslate2"], "--glossary: --engine ctranslate2 has no constraints; use --engine nmt"),
        (["--sample"], "--glossary: terms are searched for, not drawn; leave out --sample"),
        (["--set", "search.no_repeat=2"], "search.no_repeat: cannot be had together with a glossary; leave it at"),
        (["--set", "search.sampling={}"], "search.sampling: cannot be had together with a glossary"),
        (["--wait", "3"], "--wait: is greedy search for one sentence in each line; leave out --glossary"),
        (["--output", "terms.tsv"], "--output terms.tsv: is an input file of this command; write to another file"),
    ):
        assert refused(folder, "--glossary", "terms.tsv", *arguments).startswith(message)
    (folder / "wrong.tsv").write_text("a\tb\n\nc\n")
    assert refused(folder, "--glossary", "wrong.tsv").startswith("wrong.tsv:3: has no TAB")
    with pytest.raises(InputError, match="--wait: cannot be had together with --glossary"):
        package.load(folder / "run", wait=2, glossary=folder / "terms.tsv")
    assert (folder / "terms.tsv").read_text() == terms
    translator = loaded(folder)
    with pytest.raises(InputError, match="--glossary: needs a search with constraints"):
        with_glossary(replace(translator, engine=cast(Any, object())), Glossary(()))


def test_evaluation_counts_the_terms(folder: Path) -> None:
    (folder / "source").write_bytes(b"Hund\nHund Katze\nMaus\n")
    (folder / "reference").write_bytes(b"dog\ndog green cat\nmouse\n")
    (folder / "hypothesis").write_bytes(b"Hounds\ndog cat\ndog\n")
    files = ["--source", "source", "--reference", "reference", "--glossary", "terms.tsv"]
    done = nmt("evaluate", *files, "--hypothesis", "hypothesis", folder=folder)
    assert done.stdout.decode().splitlines()[-1] == "terms 33.3 % (1 of 3)"
    done = nmt("evaluate", "run", *files, "--json", "--precision", "float32", folder=folder)
    assert json.loads(done.stdout)["terms"] == {"recall": 100.0, "found": 3, "total": 3}
    for arguments, message in (
        ([*files[2:], "--hypothesis", "hypothesis"], "--glossary finds its terms in the sources; give --source"),
        ([*files, "run", "--wait", "1"], "--wait: cannot be had together with --glossary; leave one of them out"),
    ):
        assert error(nmt("evaluate", *arguments, folder=folder)).startswith(message)


def test_files_of_other_programs_are_refused(folder: Path) -> None:
    (folder / "keys.json").write_bytes(b"Hund\n")
    (folder / "table.XLSX").write_bytes(b"Hund\n")
    wrong = error(nmt("translate", "run", "-i", "keys.json", folder=folder))
    assert wrong.startswith("--input keys.json: has more than text in its lines; convert it to .po or .xliff, or, if")
    wrong = error(nmt("translate", "run", "-i", "table.XLSX", folder=folder))
    assert wrong == "--input table.XLSX: cannot be read; save it as .ods"
    for options, stdin in ((["-i", "keys.json", "--document"], b""), ([], b"Hund\n")):
        assert nmt("translate", "run", *options, folder=folder, stdin=stdin).returncode == 0
