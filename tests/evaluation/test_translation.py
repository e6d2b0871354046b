"""The scores equal what the sacrebleu command prints, signature and all."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest
from sacrebleu.sacrebleu import main as sacrebleu_command

from nmt.core.errors import InputError
from nmt.evaluation.translation import MetricScore, as_json, scores, warn_of_bleu

signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as before sacrebleu's import, which lets a broken pipe end the process

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


Command: TypeAlias = Callable[..., list[str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The lines that the sacrebleu command prints, its padding of names removed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SACREBLEU_FORMAT", "text")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(hypotheses: str, references: list[str], *options: str) -> list[str]:
        files = {"hypotheses": hypotheses, **{f"references{number}": each for number, each in enumerate(references)}}
        for name, content in files.items():
            Path(name).write_bytes(content.encode())
        arguments = [*list(files)[1:], "-i", "hypotheses", "-m", "bleu", "chrf", "ter", "--quiet", *options]
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["sacrebleu", *arguments])
            for stream, path in (("stdin", "hypotheses"), ("stdout", "printed")):  # it opens these by their numbers
                patch.setattr(sys, stream, SimpleNamespace(fileno=lambda path=path: path))
            sacrebleu_command()
            sys.stdout.close()
        return [line.strip() for line in Path("printed").read_text(encoding="utf-8").splitlines()]

    return run


def ours(hypotheses: str, references: list[str], decimals: int, **options: object) -> list[str]:
    streams = [text.split("\n")[:-1] for text in references]
    only = streams[0] if len(streams) == 1 else streams
    return [each.line(decimals) for each in scores(hypotheses.split("\n")[:-1], only, **options)]  # type: ignore[arg-type]


def text(lines: list[str], end: str = "\n") -> str:
    return "".join(line + end for line in lines)


@pytest.mark.parametrize(
    ("hypotheses", "references"),
    [
        (text(HYPOTHESES), [text(REFERENCES), text(REFERENCES[::-1])]),
        (text(["", HYPOTHESES[1], "", ""]), [text([REFERENCES[0], "", "", REFERENCES[3]])]),
        (text(["", ""]), [text(["", ""])]),
        (text(HYPOTHESES[:1]), [text(REFERENCES[:1])]),
        (text(HYPOTHESES, "\r\n"), [text(REFERENCES, " \t\r\n")]),
        (text(HYPOTHESES), [text(HYPOTHESES)]),
        ("x\x00 😀 \u2028 y\n  indented\n", ["x 😀 y\n indented\n"]),
    ],
    ids=["two-references", "empty-lines", "all-empty", "one-line", "crlf", "all-equal", "odd-characters"],
)
def test_equals_the_command_to_the_last_digit(hypotheses: str, references: list[str], command: Command) -> None:
    assert ours(hypotheses, references, 12) == command(hypotheses, references, "-w", "12")
    assert ours(hypotheses, references, 1) == command(hypotheses, references)


def test_lowercase_and_tokenizer_equal_the_command(command: Command) -> None:
    hypotheses, references = text([line.upper() for line in HYPOTHESES]), [text(REFERENCES)]
    options = ("--lowercase", "--chrf-lowercase", "--tokenize", "intl")
    expected = command(hypotheses, references, "-w", "12", *options)
    assert ours(hypotheses, references, 12, lowercase=True, tokenize="intl") == expected
    assert ours(hypotheses, references, 12) != expected


@pytest.mark.parametrize(
    ("hypothesis", "reference", "tokenizer"),
    [("我有一条狗。", "我有一只狗。", "zh"), ("ฉันมีสุนัขตัวหนึ่ง", "ฉันมีสุนัขสองตัว", "char"), ("a b c d", "a b c d", "13a")],
)
def test_the_tokenizer_is_that_of_the_references(
    hypothesis: str, reference: str, tokenizer: str, command: Command
) -> None:
    """The references alone decide: a translation into another language is segmented in the same way."""
    of_ter = [] if tokenizer == "13a" else ["--ter-normalized", "--ter-asian-support"]
    expected = command(text([hypothesis]), [text([reference])], "-w", "12", "--tokenize", tokenizer, *of_ter)
    assert ours(text([hypothesis]), [text([reference])], 12) == expected
    assert f"tok:{tokenizer}|" in scores(["He has a dog"], [reference])[0].signature
    bleu, _, ter = scores([hypothesis], [reference], tokenize="intl")
    assert "tok:intl|" in bleu.signature
    assert (ter,) == scores([hypothesis], [reference], metrics=["ter"])


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


ONE_EACH = ": give one line for each$"


@pytest.mark.parametrize(
    ("lines", "references", "options", "message"),
    [
        ("ab", ["a"], {}, f"^2 hypotheses but 1 references{ONE_EACH}"),
        ("ab", [], {}, f"^2 hypotheses but 0 references{ONE_EACH}"),
        ("ab", [["a", "b"], ["a", "b", "c"]], {}, f"^2 hypotheses but 3 references in set 2{ONE_EACH}"),
        ("", [], {}, "no hypotheses to score"),
        ("a", ["a"], {"tokenize": "13b"}, "--tokenize 13b: is not a tokenizer for BLEU; choose one of 13a, char"),
        ("a", ["a"], {"metrics": ["blue"]}, "unknown metric 'blue': choose from bleu, chrf, ter"),
        ("a", ["a"], {"tokenize": "intl"}, r"BLEU tokenizer 'intl' cannot be used here: [^\n]+$"),
    ],
)
def test_faults_are_one_plain_line(
    lines: str, references: list[str], options: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.tokenizers.tokenizer_intl", None)
    with pytest.raises(InputError, match=message):
        scores(list(lines), references, **options)
