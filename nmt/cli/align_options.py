"""The options that `nmt align` and `nmt links` share: sentence pairs, two directions, output and evaluation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO, TypeAlias, cast

import typer

from nmt import plugins
from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import choices_help, first_word
from nmt.core.errors import InputError
from nmt.plugins import AlignmentFormat

_FORMATS = ("pharaoh", "gold", "tsv", "jsonl", "npz")

FORMATS: Mapping[str, AlignmentFormat] = plugins.entries("formats", _FORMATS)
"""Formats of plug-ins."""

VIEWED = "/".join(name for name, format_ in FORMATS.items() if format_.has_views)
"""The format that shows several alignments of a pair."""

ON_TERMINAL = next((name for name, format_ in FORMATS.items() if format_.on_terminal), None)
"""The default format on a terminal."""

SOFT = ["tsv", "jsonl", "npz", *(name for name, format_ in FORMATS.items() if format_.is_soft)]
"""Formats that show the soft matrix."""

_FILES = ["npz", *(name for name, format_ in FORMATS.items() if format_.output == "file")]
_FOLDERS = [name for name, format_ in FORMATS.items() if format_.output == "folder"]

if TYPE_CHECKING:
    from nmt.alignment.directions import Join
    from nmt.alignment.formats import AlignmentWriter
    from nmt.alignment.request import AlignmentRequest
    from nmt.workflows.align import AlignmentInputs, AlignmentOutputs, CorpusTable, OpenWriter

    _Format: TypeAlias = str
else:
    _Format = Literal[(*_FORMATS, *FORMATS)]


def listed(names: Sequence[str], last: str = "and") -> str:
    """Formats names as ``a, b and c``."""
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


_OR_FOLDER = f", for {listed(_FOLDERS)} a folder" if _FOLDERS else ""
_Rule = Literal[
    "intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and", "soft-mean", "soft-product"
]
_aligned = partial(typer.Option, rich_help_panel="Input")
_joined = partial(typer.Option, rich_help_panel="Two directions")
_written = partial(typer.Option, rich_help_panel="Output")
_judged = partial(typer.Option, rich_help_panel="Evaluation")


@dataclass(frozen=True)
class AlignmentOptions:
    """Options of a command that writes alignments of sentence pairs."""

    source: Annotated[Path | None, _aligned("--source", "-s", metavar="FILE")] = None
    """Source sentences."""
    target: Annotated[Path | None, _aligned("--target", "-t", metavar="FILE")] = None
    """Their translations, to be aligned."""
    text: Annotated[bool, _aligned("--text")] = False
    """The lines are ordinary text: find its words and punctuation marks, and align these."""
    symmetrize: Annotated[_Rule | None, _joined(metavar="METHOD")] = None
    """How both directions are joined: by their links (intersection, union, grow-diag, grow-diag-final,
    grow-diag-final-and), or by a threshold on the mean or product of their matrices (soft-mean, soft-product). Default:
    grow-diag-final-and."""
    threshold: Annotated[float | None, _joined(metavar="X")] = None
    """Smallest mean or product of a link. Default: 0.25 for soft-mean, 0.05 for soft-product."""
    format_: Annotated[
        _Format | None,
        _written(
            "--format",
            metavar="FORMAT",
            help="pharaoh: hard links 0-0 1-2; gold: sure 3-4, possible 3p4; tsv: a table of links; jsonl, npz: also "
            f"the soft matrix; {choices_help(FORMATS)}. "
            f"Default: pharaoh{f', on a terminal {ON_TERMINAL}' if ON_TERMINAL else ''}.",
        ),
    ] = None
    output: Annotated[
        Path | None, _written("--output", "-o", metavar="PATH", help=f"File to write{_OR_FOLDER}; default: stdout.")
    ] = None
    base: Annotated[int | None, first_word(_written, "--base", "pharaoh, gold and tsv")] = None
    views: Annotated[
        list[str] | None,
        _written(
            "--view",
            metavar="VIEW",
            help=f"A view of --format {VIEWED}: METHOD or METHOD:HEADS, for example attention:layer3.* or gradient; "
            "each:HEADS for each head; links for those of nmt links; with the prefix forward: or backward: for one of "
            "two directions. Repeatable. Default: the alignment by the other options, and each head of attention.",
            hidden=not VIEWED,
        ),
    ] = None
    gold: Annotated[Path | None, _judged(metavar="FILE")] = None
    """Gold links, 3-4 sure and 3p4 possible: print AER to stderr."""
    gold_base: Annotated[int | None, first_word(_judged, "--gold-base", "--gold")] = None

    def reports(self) -> list[CorpusTable]:
        """Lists the tables to make of all pairs, those of plug-ins."""
        return []

    @property
    def inputs(self) -> AlignmentInputs:
        """The sentence pairs."""
        from nmt.workflows.align import AlignmentInputs

        assert self.source is not None
        return AlignmentInputs(self.source, self.target, self.gold, self.gold_base or 0, self.text)

    @property
    def outputs(self) -> AlignmentOutputs:
        """The files to write."""
        from nmt.workflows.align import AlignmentOutputs

        reports = self.reports()
        writes = self.format_ is not None or self.output is not None or not reports
        return AlignmentOutputs(self.output, self._writer() if writes else None, reports, self.format_ in _FOLDERS)

    @property
    def join(self) -> Join:
        """The rule that joins two directions."""
        from nmt.alignment import directions

        return directions.join(self.symmetrize or directions.DEFAULT, self.threshold)

    def requests(
        self, parse: Callable[[str], AlignmentRequest], *, one_way: bool, remedy: str
    ) -> list[AlignmentRequest]:
        """Lists what --view asks for. Raises InputError for one of two directions if there is only ``one_way``."""
        found = [parse(text) for text in self.views or []]
        for request in found:
            if request.direction is not None and one_way:
                raise InputError(f"--view {request.name}: is of one of two {remedy}")
        return found

    def _writer(self) -> OpenWriter:
        from nmt.workflows.align import first_view, lines

        on_terminal = self.output is None and self.base is None and sys.stdout.isatty()
        format_ = self.format_ or (ON_TERMINAL if on_terminal else None) or "pharaoh"
        if format_ in FORMATS:
            opened: OpenWriter = plugins.find("formats", format_, f"--format {format_}")
            return opened
        from nmt.alignment.formats import LineWriter, NpzWriter, gold_line, jsonl_line, pharaoh_line
        from nmt.alignment.link_files import TsvWriter

        if format_ == "npz":
            return lambda path, _: first_view(NpzWriter(cast(Path, path)))  # CONFLICTS asks for it
        base = self.base or 0
        writers: dict[str, Callable[[TextIO], AlignmentWriter]] = {
            "pharaoh": lambda stream: LineWriter(stream, lambda pair: pharaoh_line(pair.links, base)),
            "gold": lambda stream: LineWriter(stream, lambda pair: gold_line(pair.as_gold(), base)),
            "tsv": partial(TsvWriter, base=base),
            "jsonl": lambda stream: LineWriter(stream, jsonl_line),
        }
        return lines(writers[format_])


CONFLICTS = (
    Needs("", "source", "--source is missing; name the file with the source sentences"),
    Needs("gold_base", "gold", "--gold-base is of the links of --gold; give --gold as well"),
    Excludes("base", "format_!=pharaoh/gold/tsv",
        "--base: {format_} always counts from 0; leave it out, or use pharaoh, gold or tsv"),
    Needs(f"format_={'/'.join(_FILES)}", "output", "--format {format_} needs --output, a file"),
    Needs(f"format_={'/'.join(_FOLDERS)}", "output", "--format {format_} needs --output, a folder for the pictures"),
    Needs("views", f"format_={VIEWED}", f"--view chooses what --format {VIEWED} shows; add that, or leave out --view"),
)  # fmt: skip
"""Rules of the options that both commands share."""
