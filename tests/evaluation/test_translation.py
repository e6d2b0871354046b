"""The scores equal what the sacrebleu command prints, signature and all."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.evaluation.translation import MetricScore, as_json, scores, warn_of_bleu

HYPOTHESES = [
    "The cat sat on the mat.",
    "A dog, which barks, runs fast through the old park.",
    "It costs 3.50 euros – “cheap”, she says!",
    "nothing alike",
]
REFERENCES = [
    "The cat is sitting on the mat.",
    "Fast runs the dog that barks through the old park.",
    "It costs 3,50 euros: 'cheap', she said!",
    "Entirely different words here.",
]


def command(tmp_path: Path, hypotheses: str, references: list[str], *options: str) -> list[str]:
    """The lines that the sacrebleu command prints, its padding of names removed."""
    (tmp_path / "hypotheses").write_bytes(hypotheses.encode())
    names = []
    for number, text in enumerate(references):
        (tmp_path / f"references{number}").write_bytes(text.encode())
        names.append(f"references{number}")
    run = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *names, "-i", "hypotheses", "-m", "bleu", "chrf", "ter", *options],
        cwd=tmp_path,
        env={**os.environ, "SACREBLEU_FORMAT": "text", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.strip() for line in run.stdout.splitlines()]


def ours(hypotheses: str, references: list[str], decimals: int, **options: object) -> list[str]:
    streams = [text.split("\n")[:-1] for text in references]
    only = streams[0] if len(streams) == 1 else streams
    return [each.line(decimals) for each in scores(hypotheses.split("\n")[:-1], only, **options)]  # type: ignore[arg-type]


def text(lines: list[str], end: str = "\n") -> str:
    return "".join(line + end for line in lines)


@pytest.mark.parametrize(
    ("hypotheses", "references"),
    [
        pytest.param(text(HYPOTHESES), [text(REFERENCES)], id="usual"),
        pytest.param(text(HYPOTHESES), [text(REFERENCES), text(REFERENCES[::-1])], id="two-references"),
        pytest.param(
            text(["", HYPOTHESES[1], "", ""]), [text([REFERENCES[0], "", "", REFERENCES[3]])], id="empty-lines"
        ),
        pytest.param(text(["", ""]), [text(["", ""])], id="all-empty"),
        pytest.param(text(HYPOTHESES[:1]), [text(REFERENCES[:1])], id="one-line"),
        pytest.param(text(HYPOTHESES, "\r\n"), [text(REFERENCES, " \t\r\n")], id="crlf"),
        pytest.param(text(HYPOTHESES), [text(HYPOTHESES)], id="all-equal"),
        pytest.param("x\x00 😀 \u2028 y\n  indented\n", ["x 😀 y\n indented\n"], id="odd-characters"),
    ],
)
def test_equals_the_command_to_the_last_digit(hypotheses: str, references: list[str], tmp_path: Path) -> None:
    assert ours(hypotheses, references, 12) == command(tmp_path, hypotheses, references, "-w", "12")


def test_equals_the_command_as_it_prints_by_default(tmp_path: Path) -> None:
    hypotheses, references = text(HYPOTHESES), [text(REFERENCES)]
    assert ours(hypotheses, references, 1) == command(tmp_path, hypotheses, references)


def test_lowercase_and_tokenizer_equal_the_command(tmp_path: Path) -> None:
    hypotheses, references = text([line.upper() for line in HYPOTHESES]), [text(REFERENCES)]
    expected = command(
        tmp_path, hypotheses, references, "-w", "12", "--lowercase", "--chrf-lowercase", "--tokenize", "intl"
    )
    assert ours(hypotheses, references, 12, lowercase=True, tokenize="intl") == expected
    assert ours(hypotheses, references, 12) != expected


@pytest.mark.parametrize(
    ("hypothesis", "reference", "tokenizer"),
    [("我有一条狗。", "我有一只狗。", "zh"), ("ฉันมีสุนัขตัวหนึ่ง", "ฉันมีสุนัขสองตัว", "char"), ("a b c d", "a b c d", "13a")],
)
def test_the_tokenizer_is_that_of_the_references(
    hypothesis: str, reference: str, tokenizer: str, tmp_path: Path
) -> None:
    """The references alone decide: a translation into another language is segmented in the same way."""
    expected = command(tmp_path, text([hypothesis]), [text([reference])], "-w", "12", "--tokenize", tokenizer)
    assert ours(text([hypothesis]), [text([reference])], 12) == expected
    assert f"tok:{tokenizer}|" in scores(["He has a dog"], [reference])[0].signature
    assert "tok:intl|" in scores([hypothesis], [reference], tokenize="intl")[0].signature


THAI = "คณะกรรมการจะประชุมอีกครั้งในวันอังคารหน้า เพื่อหารือเรื่องงบประมาณ ของปีหน้า และเรื่องอื่น"
FEWER = "references its tokenizer 13a finds fewer or none: rely on chrF2, or try"
SENTENCES = ["The committee will meet again on Tuesday to discuss the budget."] * 10


@pytest.mark.parametrize(
    ("references", "tokenize", "warning"),
    [
        (["dog", "cat", "a dog"], None, f"in 3 of 3 {FEWER} --tokenize char"),
        (["我有一条狗。", "他没有猫，只有一条狗。"], "13a", f"in 2 of 2 {FEWER} --tokenize zh"),
        (["我有一条狗。", "他没有猫，只有一条狗。"], None, None),
        ([THAI] * 4 + SENTENCES, None, "in 4 of 14"),
        (["Yes.", *SENTENCES], None, None),
        (["", ""], None, None),
        (["Donaudampfschifffahrtsgesellschaftskapitäne trinken Pfefferminztee mit Honig."], None, None),
    ],
)  # fmt: skip
def test_references_that_bleu_tells_little_of_are_named(
    references: list[str], tokenize: str | None, warning: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    warn_of_bleu(references, tokenize=tokenize)
    error = capsys.readouterr().err
    assert error.count("\n") == (warning is not None)
    assert (warning or "") in error


def test_a_perfect_translation_and_the_order_of_metrics() -> None:
    found = scores(HYPOTHESES, HYPOTHESES, metrics=("ter", "chrf", "bleu"))
    assert [(each.name, round(each.value, 9)) for each in found] == [("TER", 0), ("chrF2", 100), ("BLEU", 100)]


def test_json_has_stable_keys_and_all_digits() -> None:
    found = scores(HYPOTHESES, REFERENCES)
    record = json.loads(as_json(found))
    assert list(record) == ["BLEU", "chrF2", "TER"]
    assert [MetricScore(name, **fields) for name, fields in record.items()] == list(found)
    assert all(list(fields) == ["value", "signature", "detail"] for fields in record.values())
    assert "\n" not in as_json(found)


def test_a_score_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        scores(["a"], ["a"])[0].value = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("references", "message"),
    [
        (["a"], "2 hypotheses but 1 references: give one reference line per hypothesis"),
        ([], "2 hypotheses but 0 references: give one reference line per hypothesis"),
        (
            [["a", "b"], ["a", "b", "c"]],
            "2 hypotheses but 3 references in set 2: give one reference line per hypothesis",
        ),
    ],
)
def test_different_numbers_of_lines_are_named(references: list[str], message: str) -> None:
    with pytest.raises(InputError) as error:
        scores(["a", "b"], references)
    assert str(error.value) == message


def test_no_lines_at_all() -> None:
    with pytest.raises(InputError, match="no hypotheses to score"):
        scores([], [])


def test_unknown_names_list_the_choices() -> None:
    with pytest.raises(InputError, match=r"--tokenize 13b: is not a tokenizer for BLEU; choose one of 13a, char"):
        scores(["a"], ["a"], tokenize="13b")
    with pytest.raises(InputError, match=r"unknown metric 'blue': choose from bleu, chrf, ter"):
        scores(["a"], ["a"], metrics=["blue"])


def test_a_tokenizer_that_cannot_be_loaded_is_one_plain_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.tokenizers.tokenizer_intl", None)
    with pytest.raises(InputError, match=r"BLEU tokenizer 'intl' cannot be used here: [^\n]+$"):
        scores(["a"], ["a"], tokenize="intl")


def test_importing_is_light() -> None:
    code = "import sys, nmt.evaluation.translation; print([m for m in ('torch', 'sacrebleu') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
