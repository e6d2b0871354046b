"""A small configuration of its own, and how it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, field_validator, model_validator

from nmt.config.structure import Structure, parse_document, validate
from nmt.core.errors import InputError


class Rnn(Structure):
    kind: Literal["rnn"] = "rnn"
    cell: Literal["gru", "lstm"] = "gru"
    layers: int = Field(default=1, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    bidirectional: bool = True


class Transformer(Structure):
    kind: Literal["transformer"] = "transformer"
    layers: int = 2
    heads: int = 4


Encoder = Annotated[Rnn | Transformer, Field(discriminator="kind")]


class Model(Structure):
    encoder: Encoder = Rnn()
    extra_encoder: Encoder | None = None
    size: int = 3


class Corpus(Structure):
    source: Path
    target: Path | None = None
    weight: float = Field(default=1.0, gt=0)


class Data(Structure):
    train: tuple[Corpus, ...] = ()
    languages: tuple[str, str] = ("de", "en")
    lengths: dict[str, int] = Field(default_factory=dict)
    prefix: str = Field(default="p", min_length=1, pattern="^p")


class Experiment(Structure):
    run: str
    seed: int = 1
    limit: int | Literal["auto"] | None = None
    model: Model = Model()
    data: Data = Data()

    @field_validator("seed")
    @classmethod
    def _not_unlucky(cls, seed: int) -> int:
        if seed == 13:
            raise ValueError("13 brings bad luck, take another")
        return seed

    @model_validator(mode="after")
    def _runs_differ(self) -> Experiment:
        if self.run == "bad":
            raise ValueError("a run may not be called bad")
        return self


def read(text: str, *overrides: str) -> Experiment:
    return validate(Experiment, parse_document(text, "c.yaml", overrides))


def message(text: str, *overrides: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text, *overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)
