"""The options of commands that distribute their work over a Ray cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import machine_option

if TYPE_CHECKING:
    from nmt.cli.prepare import PrepareOptions
    from nmt.cli.translate import TranslateOptions
    from nmt.translator.translator import Loader
    from nmt.workflows.build_corpus import OpenRunner
else:
    PrepareOptions = TranslateOptions = object

Ray: TypeAlias = Annotated[
    str | None,
    machine_option(
        "--ray",
        metavar="ADDRESS",
        help="Distribute the work over a Ray cluster: HOST:PORT, ray://HOST:PORT, or auto (a running cluster, "
        "otherwise a new one of this machine's cores).",
    ),
]


@dataclass(frozen=True)
class PrepareOnCluster(PrepareOptions):
    """Has `nmt prepare` tokenise on many machines."""

    ray: Ray = None
    after: ClassVar[str] = "force"

    def cluster(self) -> OpenRunner | None:
        if self.ray is None:
            return super().cluster()
        from nmt.extras.cluster.cluster import connected

        return partial(connected, self.ray)


@dataclass(frozen=True)
class TranslateOnCluster(TranslateOptions):
    """Has `nmt translate` translate many files on many machines."""

    ray: Ray = None
    field: Annotated[str | None, machine_option(metavar="NAME")] = None
    """With --ray: field of records with the text. Default: text."""
    after: ClassVar[str] = "output"
    more_help: ClassVar[dict[str, str]] = {
        "": " With --ray it translates many files on many machines (text, JSONL or Parquet) into files of the same "
        "names.",
        "input_": " With --ray a file, a folder, or a pattern in quotes.",
        "output": " With --ray a folder.",
    }
    conflicts: ClassVar = (
        Excludes("prefix constraints glossary workers", "ray",
            "{option}: cannot be had together with --ray; leave it out"),
        Needs("ray", "input_", "--ray: needs --input: shards are read from files and written to a folder"),
        Needs("ray", "output", "--ray: needs --output: shards are read from files and written to a folder"),
        Needs("field", "ray", "--field: is for the JSONL and Parquet that --ray reads; without it the input is text"),
    )  # fmt: skip

    def run(self, load: Loader) -> None:
        if self.ray is None or self.input_ is None or self.output is None:
            super().run(load)
            return
        from nmt.extras.cluster.translate_shards import ShardJob, translate_shards
        from nmt.translator.windows import OutputOptions

        wanted = OutputOptions(self.format_, self.alignment)
        settings = self.field, self.engine, self.device, self.precision, self.context
        job = ShardJob(self.output, tuple(self.changes), wanted, *settings)
        translate_shards(job, [self.model, *(self.ensemble or [])], self.input_, self.ray)
