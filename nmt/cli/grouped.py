"""Commands whose help pages show options in groups, which take an option only once, and sentence pairs in three
forms."""

from __future__ import annotations

import re
from copy import copy
from functools import cache
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand

from nmt.core import log
from nmt.core.errors import InputError

SINGLE_DASH = re.compile("-[a-z][a-z_-]+(=.*)?")
"""Pattern of a long option with one dash: ``-src FILE`` would be read as ``-s rc``."""


def set_verbosity(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print more.")] = False,
) -> None:
    """Applies the options of every command."""
    if quiet and verbose:
        raise InputError("--quiet and --verbose contradict each other; give one of them")
    log.set_verbosity(log.Verbosity.QUIET if quiet else log.Verbosity.VERBOSE if verbose else log.Verbosity.NORMAL)


@cache
def _common() -> list[Any]:
    """Returns the options of ``set_verbosity``."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command()(set_verbosity)
    return typer.main.get_command(single).params


class GroupedCommand(TyperCommand):
    """Shows options under the title of their ``rich_help_panel``, and those without one last. Typer itself does so only
    if Rich formats the page. An option that is given twice is an error unless it takes a list; Typer would take the
    last one and drop the others. Each command has --quiet and --verbose, which its function does not get.

    Beside --source and --target (or --reference), or --valid-source and --valid-target, each command takes --tsv, one
    file that holds both sides, or the files as arguments after its own argument. The function of the command then gets
    the one file as both sides, as the same object, or the two files: see ``nmt.workflows.align.corpus_of``."""

    def __init__(self, name: str, *, params: list[Any], **settings: Any) -> None:
        params = [*params, *map(copy, _common())]
        self.pairs: list[tuple[Any, Any, Any]] = []
        self.needs_pairs = False
        if any(each.name == "source" for each in params):  # commands that read no pairs do not need this module
            from nmt.cli.pair_files import add_options

            self.pairs, self.needs_pairs = add_options(params)
        super().__init__(name, params=params, **settings)

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if not ctx.resilient_parsing:
            if any(map(SINGLE_DASH.fullmatch, args)):
                from nmt.cli.mistakes import refuse_single_dash

                refuse_single_dash(filter(SINGLE_DASH.fullmatch, args), self.get_params(ctx), args, ctx.command_path)
            try:
                *_, given = self.make_parser(ctx).parse_args(args=list(args))
            except typer.TyperException as error:
                cast(Any, error).ctx = ctx  # some parameters do not have it
                raise
            for parameter in given:
                is_single = parameter.param_type_name == "option" and not (parameter.multiple or parameter.is_eager)
                if is_single and given.count(parameter) > 1:
                    ctx.fail(f"{max(parameter.opts, key=len)} is given {given.count(parameter)} times; give it once")
        ctx.allow_extra_args = bool(self.pairs)
        super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            set_verbosity(quiet=ctx.params.pop("quiet"), verbose=ctx.params.pop("verbose"))
            if self.pairs:
                from nmt.cli.pair_files import find_pairs

                find_pairs(self, ctx)
        return ctx.args

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        pieces = [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]
        return [*pieces, *["[FILE FILE]"] * bool(self.pairs)]

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        for title, records in self.sections(ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)

    def shell_complete(self, ctx: typer.Context, incomplete: str) -> list[Any]:  # type: ignore[override]
        from nmt.cli.help_sections import describe

        describe(self)
        return super().shell_complete(ctx, incomplete)

    def sections(self, ctx: typer.Context) -> dict[str, list[tuple[str, str]]]:
        """Lists the titles, each with its parameters as they are written, and their help."""
        from nmt.cli.help_sections import describe, sections

        describe(self)
        return sections(self, ctx)
