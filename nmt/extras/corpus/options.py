"""The option of `nmt init` for the corpus that comes with nmt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from nmt.cli.conflicts import Excludes, Needs

if TYPE_CHECKING:
    from nmt.cli.init import InitOptions
    from nmt.workflows.init_config import CorpusParts
else:
    InitOptions = object


@dataclass(frozen=True)
class InitExample(InitOptions):
    """Has `nmt init` use a small corpus."""

    example: Annotated[bool, typer.Option("--example", rich_help_panel="Input files")] = False
    """Use a small German-English corpus that comes with nmt. The default NAME is then example."""
    after: ClassVar[str] = "target"
    conflicts: ClassVar = (
        Needs("", "name example",
            "NAME is missing; give one such as de-en (or --example, to try nmt with a corpus of its own)"),
        Excludes("example",
            "source target valid_source valid_target test_source test_target valid_pairs test_pairs",
            "--example has a corpus of its own, in parts; leave out --example, or files and numbers"),
    )  # fmt: skip

    def parts(self) -> tuple[str, Callable[[], CorpusParts]]:
        if not self.example:
            return super().parts()
        from nmt.extras.corpus.example import write_example
        from nmt.workflows.init_config import CorpusParts, places, size_of_run

        name = self.name or "example"
        if self.start_from is not None:
            size_of_run(self.start_from)  # before the corpus is written

        def write() -> CorpusParts:
            written = write_example(places(name)[2])
            return CorpusParts(written["train"], written["valid"], written["test"])

        return name, write
