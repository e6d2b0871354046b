"""`nmt links`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from nmt.cli.align_options import CONFLICTS, AlignmentOptions
from nmt.cli.conflicts import Needs
from nmt.cli.options import first_word, with_options
from nmt.core import log

_files = partial(typer.Option, rich_help_panel="Links")


@dataclass(frozen=True)
class LinkOptions(AlignmentOptions):
    """The options of `nmt links`."""

    links: Annotated[Path | None, typer.Argument(metavar="LINKS", help="A file of links, of any format.")] = None
    reverse_links: Annotated[Path | None, _files(metavar="FILE")] = None
    """Links of the other direction, to be joined with LINKS; source first, as fast_align and eflomal write them."""
    links_base: Annotated[int | None, first_word(_files, "--links-base", "LINKS and --reverse-links")] = None
    target_first: Annotated[bool, _files("--target-first")] = False
    """--reverse-links (or LINKS, if it is the only file) puts the target first, as nmt align with a model of the other
    direction does."""
    after: ClassVar[str] = "text"


LINK_CONFLICTS = (
    *CONFLICTS,
    Needs("", "links", "LINKS is missing; name the file with the links"),
    Needs("", "target", "LINKS are of given pairs; give --target as well"),
    Needs("symmetrize threshold", "reverse_links",
        "--symmetrize and --threshold join two files of links; give --reverse-links as well"),
)  # fmt: skip


@with_options(LinkOptions, LINK_CONFLICTS)
def links(options: LinkOptions) -> Callable[[], object]:
    """Join, convert, draw and score files of word alignments.

    Reads the links of any aligner and the sentences that they are of, and prints one line for each pair. With
    --reverse-links the links of both directions are joined (symmetrized). With --gold they are scored. No model is
    needed."""
    from nmt.alignment.request import LINKS, AlignmentRequest, parse_link_request
    from nmt.workflows.links import LinkFile, ReverseLinks, write_links

    assert options.links is not None
    inputs, outputs = options.inputs, options.outputs
    requests = options.requests(
        parse_link_request, one_way=options.reverse_links is None, remedy="files; give --reverse-links as well"
    )
    reverse = None
    if options.reverse_links is not None:
        reverse = ReverseLinks(LinkFile(options.reverse_links, options.links_base, options.target_first), options.join)
    first = LinkFile(options.links, options.links_base, options.target_first and reverse is None)
    return partial(write_links, first, reverse, requests or [AlignmentRequest(LINKS)], inputs, outputs)


def renamed(arguments: Sequence[str]) -> list[str]:
    """Turns ``nmt align --links FILE``, the spelling before 0.2, into ``nmt links FILE``, with a warning."""
    index = next((index for index, each in enumerate(arguments) if each.partition("=")[0] == "--links"), None)
    if arguments[:1] != ["align"] or index is None:
        return list(arguments)
    log.warning("nmt align --links FILE is now nmt links FILE; the old spelling works until nmt 0.3")
    _, equals, file = arguments[index].partition("=")
    after = arguments[index + 1 :] if equals else arguments[index + 2 :]
    return ["links", *([file] if equals else arguments[index + 1 : index + 2]), *arguments[1:index], *after]
