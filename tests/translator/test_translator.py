"""The parts of a translator that a model needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import nmt as package
from nmt.core.errors import InputError
from nmt.translator.aligner import Aligner


def test_markup_and_the_learnt_aligner_come_from_the_loader(trained: Path) -> None:
    translator = package.load(trained / "run", precision="float32", overrides=["search.markup=true"])
    with pytest.raises(InputError, match=r"^search.markup: needs nmt.extras.markup; load the model with nmt.load$"):
        replace(translator, markup=None)
    with pytest.raises(InputError, match=r"^--method trained: needs nmt.extras.word_aligner; load the model with nmt"):
        Aligner(translator.trained, translator.aligner.extraction).check_method("trained")
