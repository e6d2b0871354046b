"""The options of commands that distribute their work over a Ray cluster."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from nmt.cli.conflicts import Excludes, Needs
from nmt.cli.options import machine_option
from nmt.core.errors import InputError

if TYPE_CHECKING:
    from nmt.cli.prepare import PrepareOptions
    from nmt.cli.translate import TranslateOptions
    from nmt.translator.translator import Loader
    from nmt.translator.windows import OutputOptions
    from nmt.workflows.build_corpus import OpenRunner
else:
    PrepareOptions = TranslateOptions = object

COPIES = "nmt-copies-"
"""How the names of folders begin that hold what was fetched, or is to be sent."""

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
    shard: Annotated[str | None, machine_option(metavar="I/N")] = None
    """Translate the I-th of N parts of many files, for job arrays: the work of --ray in N processes. Done files are not
    translated again."""
    field: Annotated[str | None, machine_option(metavar="NAME")] = None
    """With --ray or --shard: field of records with the text. Default: text."""
    after: ClassVar[str] = "output"
    more_help: ClassVar[dict[str, str]] = {
        "": " With --ray or --shard it translates many files on many machines (text, JSONL or Parquet) into files of "
        "the same names.",
        "input_": " Also an address such as s3://bucket/name, through fsspec. With --ray or --shard a file, a folder, "
        "or a pattern in quotes.",
        "output": " Also an address. With --ray or --shard a folder.",
    }
    conflicts: ClassVar = (
        Excludes("prefix constraints glossary dictionary report workers wait", "ray shard",
            "{option}: cannot be had together with {others}; leave it out"),
        Excludes("shard", "ray", "{option}: cannot be had together with --ray; leave it out"),
        Needs("ray shard", "input_", "{option}: needs --input: files are read and written to a folder"),
        Needs("ray shard", "output", "{option}: needs --output: files are read and written to a folder"),
    )  # fmt: skip

    def output_options(self) -> OutputOptions:
        return replace(super().output_options(), hint=COPIES not in f"{self.input_}{self.output}")

    def run(self, load: Loader) -> None:
        if (self.ray is None and self.shard is None) or self.input_ is None or self.output is None:
            if self.field is not None:
                raise InputError("--field: is for the JSONL and Parquet that --ray and --shard read; leave it out")
            self._run_here(load)
            return
        from nmt.extras.cluster.addresses import address_of
        from nmt.extras.cluster.translate_shards import ShardJob, translate_shards
        from nmt.translator.windows import OutputOptions

        wanted = OutputOptions(self.format_, self.alignment)
        settings = self.field, self.engine, self.device, self.precision, self.context
        part = None if self.shard is None else parse_part(self.shard)
        if address := address_of(self.input_) or address_of(self.output):
            raise InputError(f"{address}: --ray and --shard read and write files; name one object for each process")
        job = ShardJob(self.output, tuple(self.changes), wanted, *settings, part=part)
        translate_shards(job, [self.model, *(self.ensemble or [])], self.input_, self.ray)

    def _run_here(self, load: Loader) -> None:
        """Translates, and fetches and sends what is at an address."""
        if ":" not in f"{self.input_}{self.output}":
            super().run(load)
            return
        from nmt.extras.cluster.addresses import address_of, fetched, sent

        if self.output is not None and self.input_ == self.output:
            raise InputError(f"--output {address_of(self.output)}: is the input of this command; name another object")
        files: dict[str, Any] = {}
        with ExitStack() as stack:
            if self.output is not None and address_of(self.output) is not None:
                files["output"] = stack.enter_context(sent(self.output, prefix=COPIES))
            if self.input_ is not None and address_of(self.input_) is not None:
                files["input_"] = stack.enter_context(fetched(self.input_, prefix=COPIES))
            super(TranslateOnCluster, replace(self, **files)).run(load)


def parse_part(text: str) -> tuple[int, int]:
    """Reads I/N. Raises InputError."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise InputError(f"--shard {text}: expected I/N, such as 1/8 for the first of eight parts, up to 8/8")
    return int(number), int(count)
