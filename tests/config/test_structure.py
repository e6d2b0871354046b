"""Typed trees: what is accepted, exact round trips, and differences."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nmt.config.structure import differences, dump
from tests.config.shapes import Corpus, Data, Experiment, Model, Rnn, Transformer, read


def test_nested_choices_lists_and_defaults() -> None:
    experiment = read(
        """
        run: a
        model:
          encoder: {kind: transformer, heads: 8}
          extra_encoder: {kind: rnn}
        data:
          train:
            - {source: a.de, weight: 2}
            - source: b.de
        """
    )
    assert experiment.model == Model(encoder=Transformer(heads=8), extra_encoder=Rnn())
    assert [corpus.source for corpus in experiment.data.train] == [Path("a.de"), Path("b.de")]
    assert experiment.data.train[0].weight == 2.0
    assert type(experiment.data.train[0].weight) is float


def test_structures_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Model().size = 4  # type: ignore[misc]


@given(
    st.builds(
        Experiment,
        run=st.text().filter(lambda run: run != "bad"),
        seed=st.integers(min_value=14),
        limit=st.none() | st.integers() | st.just("auto"),
        model=st.builds(
            Model,
            encoder=st.builds(Rnn, dropout=st.floats(0, 1, exclude_max=True), layers=st.integers(min_value=1))
            | st.builds(Transformer),
        ),
        data=st.builds(Data, train=st.lists(st.builds(Corpus, source=st.text("abc/. ").map(Path))).map(tuple)),
    )
)
def test_dump_and_load_give_the_same_structure(experiment: Experiment) -> None:
    assert read(dump(experiment)) == experiment


def test_dump_is_complete_and_in_the_order_of_the_classes() -> None:
    assert dump(Model()) == (
        "encoder:\n  kind: rnn\n  cell: gru\n  layers: 1\n  dropout: 0.1\n  bidirectional: true\n"
        "extra_encoder: null\nsize: 3\n"
    )


def test_other_yaml_readers_agree_on_a_dump() -> None:
    assert yaml.safe_load(dump(Data(train=(Corpus(source=Path("a b"), weight=0.5),)))) == {
        "train": [{"source": "a b", "target": None, "weight": 0.5}],
        "languages": ["de", "en"],
        "lengths": {},
        "prefix": "p",
    }


def test_differences_name_the_keys() -> None:
    one = Experiment(run="a", data=Data(train=(Corpus(source=Path("x")),)))
    assert differences(one, one) == []
    assert differences(one, one.model_copy(update={"run": "b", "seed": 2})) == ["run", "seed"]
    other = Experiment(
        run="a",
        model=Model(encoder=Transformer(), extra_encoder=Rnn()),
        data=Data(train=(Corpus(source=Path("y"), weight=2.0),), lengths={"de": 3}),
    )
    assert differences(one, other) == [
        "model.encoder.kind",
        "model.extra_encoder",
        "data.train.0.source",
        "data.train.0.weight",
        "data.lengths.de",
    ]
    assert differences(one, Experiment(run="a")) == ["data.train"]
