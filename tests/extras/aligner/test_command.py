"""Mistakes in the options of `nmt aligner`, and of `nmt align` without a model, which are found before it learns."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nmt.extras.aligner import align
from tests.workflows.runs import Command

ALIGNER, TO_FILE, ALIGN = "aligner -s x.de -t x.en", "aligner -s x.de -t x.en -o out", "align -s x.de -t x.en"
TOGETHER = "--source and --target go together; give both"


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("aligner -s x.de", TOGETHER),
        ("aligner -t x.de -o out", TOGETHER),
        ("aligner -o out", "--output needs text to learn from; give --source and --target as well"),
        (f"{TO_FILE} run", "leave out MODEL, or --output"),
        *(
            (f"{TO_FILE} {option}", f"leave out {option.split()[0]}, or --output")
            for option in ("--seed 0", "--set a=b", "--device cpu", "--precision float32")
        ),
        ("aligner --continue x.de", "--continue goes on from an aligner that needs no model; give --output as well"),
        (f"{TO_FILE} --continue x.de", "x.de: is not an aligner, or damaged"),
        ("aligner -s no -t x.en -o out", "no: no such file"),
        ("aligner -s x.de -t no -o out", "no: no such file"),
        ("aligner -s . -t x.en -o out", ".: is a folder; name a file"),
        ("aligner -s x.de -t short -o out", "short has 1 lines, but x.de has more: they must agree"),
        ("aligner -s bytes -t x.en -o out", "bytes has 1 lines"),
        *(
            (f"{command} -s {files}", f"{blank}: holds no word to learn from")
            for command in ("aligner -o out", "align --learn")
            for files, blank in (("x.de -t blank", "blank"), ("blank -t x.en", "blank"), ("empty -t empty", "empty"))
        ),
        (f"{ALIGNER} -o x.de", "--output x.de: is an input file of this command"),
        (f"{ALIGNER} -o .", "--output .: cannot be written: is a folder"),
        (f"{ALIGNER} -o no/x", "--output no/x: cannot be written: folder no does not exist"),
        (f"{ALIGNER} -o x.en/x", "--output x.en/x: cannot be written: folder x.en does not exist"),
        (f"{ALIGNER} no-run", "no-run: no such run directory, checkpoint or config"),
        (f"{ALIGNER} --seed -1", "--seed: expected at least 0, found -1"),
        ("aligner --sed 1", "--sed: no such option"),
        ("aligner --learn", "--learn: no such option"),
        (f"{ALIGN} --learn --aligner x", "--learn learns from the given pairs, and --aligner has been learnt; leave"),
        (f"{ALIGN} --learn run", "--learn aligns both directions together, without a model; leave out MODEL"),
        *(
            (f"{ALIGN} --learn {option}", f"leave out {option.split()[0]}")
            for option in ("--method trained", "--heads *", "--reverse x", "--level word", "--compare")
        ),
        *(
            (f"{ALIGN} --aligner x {option}", f"leave out {option.split()[0]}")
            for option in ("--symmetrize union", "--threshold 0.0", "--compare", "--view attention")
        ),
        (f"{ALIGN} --learn --beam 3 --device cpu", "leave out --set and search options, --device"),
        (f"{ALIGN} --aligner x --suspects y", "--suspects asks a model how probable each pair is, and --aligner has"),
        (f"{ALIGN} --min-probability 0.5", "of what is learnt from text; give --learn or --aligner as well"),
        (f"{ALIGN} --aligner no", "no: cannot be read: No such file or directory"),
        (f"{ALIGN} --aligner .", ".: is a folder, but a file is needed"),
        (f"{ALIGN} --aligner short", "short: is not an aligner, or damaged; make one with nmt aligner"),
        (f"{ALIGN} --aligner x.aligner -o x.aligner", "x.aligner: is an input file of this command"),
        (f"{ALIGN} --aligner x.aligner --gold no", "no: no such file"),
        (f"{ALIGN} --learn --gold short", "short:1: 'eins' is not a link"),
        (f"{ALIGN} --learn --lexicon no/x", "--lexicon no/x: cannot be written: folder no does not exist"),
        (f"{ALIGN} --learn -o no/x", "--output no/x: cannot be written: folder no does not exist"),
        ("align --learn -s x.de", "--learn aligns given pairs; give --target as well"),
        ("align --learn -t x.de", "--source is missing"),
        ("align --learn -s x.de -t short", "lines, but"),
    ],
)
def test_mistakes(
    nmt: Command, text: Path, folder: Path, tmp_path: Path, command: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(align, "learn_aligner", lambda *_, **__: pytest.fail("it has learnt before it saw this"))
    for each in (*text.iterdir(), folder / "x.aligner"):
        shutil.copy(each, tmp_path)
    before = {each.name for each in tmp_path.iterdir()}
    assert error in nmt(*command.split()).error
    assert {each.name for each in tmp_path.iterdir()} == before
