"""The confidence of translations in each format, by an estimator that stands for a plug-in's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from nmt.core.lines import Line
from nmt.translator.loading import TrainedModel
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputOptions, Window


@dataclass(frozen=True)
class Length:
    """A confidence that is the inverse of the number of words."""

    right: float
    reasons: tuple[str, ...] = ("long", "short")

    def tree(self) -> dict[str, Any]:
        return {"right": self.right}


class ByLength:
    """Gives sources of one word no confidence."""

    def with_confidence(
        self, trained: TrainedModel, sources: Sequence[str], ranked: Sequence[tuple[Translation, ...]]
    ) -> list[tuple[Translation, ...]]:
        return [
            tuple(self.estimated(source, one) for one in of_source)
            for source, of_source in zip(sources, ranked, strict=True)
        ]

    def estimated(self, source: str, translation: Translation) -> Translation:
        return replace(translation, text=source, confidence=self.of_pairs(None, [source], [""])[0])

    def of_pairs(
        self, trained: TrainedModel | None, sources: Sequence[str], targets: Sequence[str], first_line: int = 1
    ) -> list[Length | None]:
        return [Length(1 / len(words)) if len(words := source.split()) > 1 else None for source in sources]


def test_every_format_has_the_confidence(translator: Translator) -> None:
    estimating = replace(translator, estimator=ByLength())
    window = Window([Line(1, "der hund"), Line(2, "hund")])

    def written(format: Any, confidence: bool = True) -> list[str]:
        return OutputOptions(format, confidence=confidence).translate(estimating, window).text.splitlines()

    assert written("text") == ["0.5000\tder hund", "\thund"]
    assert written("text", confidence=False) == ["der hund", "hund"]
    cells = [line.split("\t") for line in written("tsv")]
    assert [row[3:] for row in cells] == [["der hund", "0.5000", "long; short"], ["hund", "", ""]]
    best = [json.loads(line)["translations"][0] for line in written("jsonl")]
    assert [x["confidence"] for x in best] == [{"right": 0.5}, None]
