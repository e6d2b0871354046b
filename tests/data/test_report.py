"""The table of the report of prepare, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from nmt.data.report import CorpusReport, LineCount, Report, SideReport, ValidReport, report_table

SIDE: dict[str, Any] = {"vocabulary": 8000, "words": 10, "unknown": 0.00025, "lengths": {"least": 1, "99%": 40}}
CORPUS = CorpusReport(
    name="a.tsv",
    weight=0.5,
    pairs=1200,
    kept=1187,
    dropped={
        "empty": LineCount(pairs=12, first_lines=(1, 2)),
        "identical": LineCount(),
        "held out": LineCount(pairs=1, first_lines=(9,)),
    },
)
TABLE = """\
train a.tsv, weight 0.5
  pairs read                      1,200
  - empty                            12   lines 1, 2, …
  - held out                          1   line 9
  = kept                          1,187
                                 source         target
  vocabulary                      8,000          8,000
  tokens                         12,345             20
  tokens per word               1234.50           2.00
  unknown                        0.025%         0.025%
  length least                        1              1
  length 99%                         40             40"""


def report(**changed: Any) -> Report:
    source = SideReport(tokens=12_345, tokens_per_word=1234.5, **SIDE)
    target = SideReport(tokens=20, tokens_per_word=2.0, rare=changed.pop("rare", 0), **SIDE)
    return Report(**{"corpora": (CORPUS,), "valid": None, "source": source, "target": target, **changed})


def test_the_table() -> None:
    assert report_table(report()) == TABLE.splitlines()
    assert (report(corpora=(CORPUS,) * 2).pairs, report(corpora=(CORPUS,) * 2).kept) == (2400, 2374)


@pytest.mark.parametrize(
    ("changed", "rows"),
    [
        ({"rare": 7}, ["  rarer words                         0              7"]),
        (
            {
                "corpora": (
                    CORPUS.model_copy(
                        update={"weight": 1.0, "near_duplicates": LineCount(pairs=2, first_lines=(3, 4))}
                    ),
                )
            },
            ["train a.tsv", "    near duplicates                   2   kept; lines 3, 4"],
        ),
        (
            {
                "valid": ValidReport(
                    name="v.tsv",
                    pairs=5,
                    blank=LineCount(),
                    too_long=LineCount(pairs=1, first_lines=(5,)),
                    unknown=(0.5, 0),
                )
            },
            [
                "valid v.tsv",
                "  pairs                               5",
                "    longer than train's               1   kept; line 5",
                "  unknown in valid              50.000%         0.000%",
            ],
        ),
    ],
    ids=["rare words", "near duplicates", "validation"],
)
def test_rows_that_are_shown_where_there_is_something_to_show(changed: dict[str, Any], rows: list[str]) -> None:
    assert [line for line in report_table(report(**changed)) if line not in TABLE.splitlines()] == rows
