"""Alignments by two models, against those that each model finds alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nmt
from nmt.alignment.directions import join
from nmt.translator.both_directions import BothDirections
from tests.workflows.test_align_models import SOURCES, TARGETS


@pytest.mark.parametrize("method", ["attention", "gradient"])
@pytest.mark.parametrize("name", ["intersection", "grow-diag-final-and", "soft-product"])
def test_what_each_model_finds_alone_is_joined(
    translator: nmt.Translator, reverse: Path, name: str, method: str
) -> None:
    backward = nmt.load(reverse, device="cpu", precision="float32")
    found = BothDirections(translator, backward, join(name)).align(SOURCES, TARGETS, method=method)
    singles = translator.align(SOURCES, TARGETS, method=method), backward.align(TARGETS, SOURCES, method=method)
    for source, each, one, other in zip(SOURCES, found, *singles, strict=True):
        assert each.source_words == one.source_words == other.target_words == tuple(source.split())
        assert each.target_words == one.target_words == other.source_words
        p_TS, q_TS = one.weights_TS, other.weights_TS.T
        is_product = name == "soft-product"
        np.testing.assert_allclose(each.weights_TS, p_TS * q_TS if is_product else (p_TS + q_TS) / 2, atol=1e-6)
        forward, swapped, links = set(one.links), {(s, t) for t, s in other.links}, set(each.links)
        if name == "intersection":
            assert links == forward & swapped
        elif is_product:
            # each of the pairs with words has more than one on one side; their rows are not constant
            assert links == {(s, t) for t, s in zip(*np.nonzero(each.weights_TS >= 0.05), strict=True)}
        else:
            assert forward & swapped <= links <= forward | swapped
    assert any(each.links for each in found)


def test_both_models_must_not_be_of_one_run_and_language(translator: nmt.Translator) -> None:
    with pytest.raises(nmt.InputError, match="run/best: is of the same run as the forward model; name the other"):
        BothDirections(translator, translator, join("union"))
