"""Commands whose help pages show options in groups, and that take an option once."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand


class GroupedCommand(TyperCommand):
    """Shows options under the title that they have as ``rich_help_panel``, those without one last. Typer itself does so
    only where Rich paints the page. An option that is given twice, of which Typer would take the last one and drop the
    others, is an error unless it takes a list."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if not ctx.resilient_parsing:
            *_, given = self.make_parser(ctx).parse_args(args=list(args))
            for parameter in given:
                is_single = parameter.param_type_name == "option" and not (parameter.multiple or parameter.is_eager)
                if is_single and given.count(parameter) > 1:
                    ctx.fail(f"{max(parameter.opts, key=len)} is given {given.count(parameter)} times; give it once")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        for title, records in self.sections(ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)

    def sections(self, ctx: typer.Context) -> dict[str, list[tuple[str, str]]]:
        """Lists the titles, each with its parameters as they are written, and their help."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        others: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            title = getattr(parameter, "rich_help_panel", None)
            if parameter.param_type_name == "argument":
                sections["Arguments"].append(record)
            elif title is None:
                others.append(record)
            else:
                sections.setdefault(title, []).append(record)
        sections["Other options" if len(sections) > 1 else "Options"] = others
        return {title: records for title, records in sections.items() if records}
