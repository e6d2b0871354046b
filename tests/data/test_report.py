"""The table of the report of prepare, word for word."""

from __future__ import annotations

from typing import Any

from nmt.data.report import CorpusReport, LineCount, Report, SideReport, ValidReport, report_table

SIDE: dict[str, Any] = {"vocabulary": 8000, "words": 10, "unknown": 0.00025, "lengths": {"least": 1, "99%": 40}}
TWO, NONE = LineCount(pairs=2, first_lines=(3, 4)), LineCount()
CORPUS = CorpusReport(
    name="a.tsv",
    weight=0.5,
    pairs=1200,
    kept=1187,
    dropped={"empty": LineCount(pairs=12, first_lines=(1, 2)), "held out": LineCount(pairs=1, first_lines=(9,))},
    near_duplicates=TWO,
)
REPORT = Report(
    corpora=(CORPUS,),
    valid=ValidReport(name="v.tsv", pairs=5, blank=NONE, too_long=TWO, unknown=(0.5, 0.0)),
    source=SideReport(tokens=12_345, tokens_per_word=1234.5, **SIDE),
    target=SideReport(tokens=20, tokens_per_word=2.0, rare=7, **SIDE),
)
TABLE = """\
train a.tsv, weight 0.5
  pairs read                      1,200
  - empty                            12   lines 1, 2, …
  - held out                          1   line 9
  = kept                          1,187
    near duplicates                   2   kept; lines 3, 4
valid v.tsv
  pairs                               5
    longer than train's               2   kept; lines 3, 4
                                 source         target
  vocabulary                      8,000          8,000
  rarer words                         0              7
  tokens                         12,345             20
  tokens per word               1234.50           2.00
  unknown                        0.025%         0.025%
  unknown in valid              50.000%         0.000%
  length least                        1              1
  length 99%                         40             40"""


def test_the_table_has_a_row_for_everything_that_there_is() -> None:
    assert report_table(REPORT) == TABLE.splitlines()
    corpus = {"weight": 1.0, "dropped": {**CORPUS.dropped, "empty": NONE}, "near_duplicates": NONE}
    changed: dict[str, Any] = {
        "corpora": (CORPUS.model_copy(update=corpus),) * 2,
        "valid": None,
        "target": REPORT.target.model_copy(update={"rare": 0}),
    }
    report = REPORT.model_copy(update=changed)
    rows = TABLE.replace(", weight 0.5", "").splitlines()
    assert report_table(report) == [rows[row] for row in (0, 1, 3, 4, 0, 1, 3, 4, 9, 10, 12, 13, 14, 16, 17)]
    assert (report.pairs, report.kept) == (2400, 2374)
