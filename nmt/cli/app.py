"""The `nmt` command: its subcommands, and the exit codes of its errors.

    0    done
    1    a fault of ours, with a traceback; a run directory that is gone, in one line
    2    a fault of the input, the configuration or the command line, in one line on stderr
    130  interrupted (Ctrl-C)
    141  the reader of our output went away, as `head` does
    143  ended by SIGTERM or a closed terminal; `nmt train` has saved before, and no command leaves an unfinished file

Neither this module nor the command modules import PyTorch, so that `--help` and configuration errors are shown at once.
Only the requested command is imported.
"""

from __future__ import annotations

import errno
import io
import os
import re
import select
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache, partial
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import nmt
from nmt import plugins
from nmt.cli.grouped import GroupedCommand
from nmt.cli.options import OptionsCommand
from nmt.core.errors import InputError
from nmt.plugins import Command

if TYPE_CHECKING:
    from typing_extensions import Buffer

BROKEN_PIPE = 128 + 13  # what a shell reports for a program that SIGPIPE ended

# errors of the system for which a traceback does not help: a full disk, a quota, a read-only or forbidden place
REFUSED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM})

GROUPS = ("Your own data", "Train", "Use", "Look", "More")
"""The titles of the page of all commands; others come behind them."""

OWN = {
    "init": Command("nmt.cli.init:init", "Your own data", 10),
    "prepare": Command("nmt.cli.prepare:prepare", "Your own data", 20),
    "train": Command("nmt.cli.train:train", "Train", 10),
    "average": Command("nmt.cli.average:average", "Train", 20),
    "translate": Command("nmt.cli.translate:translate", "Use", 10),
    "align": Command("nmt.cli.align:align", "Use", 20),
    "score": Command("nmt.cli.score:score", "Use", 30),
    "evaluate": Command("nmt.cli.evaluate:evaluate", "Look", 10),
    "links": Command("nmt.cli.links:links", "Look", 15),
    "info": Command("nmt.cli.info:info", "Look", 40),
    "config": Command("nmt.cli.config:config", "More", 10),
}


def _order(item: tuple[str, Command]) -> tuple[int, int]:
    group = item[1].group
    return GROUPS.index(group) if group in GROUPS else len(GROUPS), item[1].place


COMMANDS: Mapping[str, Command] = dict(sorted({**OWN, **plugins.entries("commands", OWN)}.items(), key=_order))
"""The commands in the order of the help page."""


@cache
def build_command(name: str) -> Any:
    """Imports a command and builds its parser, when it is first used: importing all commands would take about 40 ms."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    function = _function(name)
    if isinstance(function, OptionsCommand):
        function = function.parser(plugins.options(name))
    single.command(name, cls=GroupedCommand)(function)
    return typer.main.get_command(single)


def _function(name: str) -> Any:
    return plugins.attribute(OWN[name].reference) if name in OWN else plugins.find("commands", name, f"nmt {name}")


class _Commands(TyperGroup):
    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        try:
            return build_command(cmd_name) if cmd_name in COMMANDS else None
        except Exception:
            if ctx.resilient_parsing:  # the shell completes the other commands
                return None
            raise

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        from nmt.cli.help_sections import command_sections

        for title, records in command_sections(COMMANDS, _function).items():
            with formatter.section(title):
                formatter.write_dl(records)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            result = super().invoke(ctx)
            while callable(result):  # see OptionsCommand
                result = result()
            if sys.stdout is not None:
                sys.stdout.flush()  # so that a full disk or a closed pipe is noticed here, not at interpreter exit
            return None
        except BrokenPipeError as error:
            # caught before Typer, which would silently exit with 1 for any pipe
            gone = [descriptor for descriptor in (1, 2) if _reader_is_gone(descriptor)]
            if not gone:
                raise RuntimeError("a pipe within nmt broke") from error
            for descriptor in gone:  # buffered output is discarded
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
            raise typer.Exit(BROKEN_PIPE) from None


class _Terminal(io.BufferedWriter):
    """stdout if it is a terminal, to which control characters in names and texts must not be written."""

    def __init__(self, raw: io.RawIOBase, encoding: str) -> None:
        super().__init__(raw)
        self._encoding = encoding

    def write(self, data: Buffer) -> int:
        from nmt.core.terminal_width import printable

        text = bytes(data).decode(self._encoding, "replace")
        text = re.sub(r"(?:(?!\r\n)[^\t\n -~])+", lambda odd: printable(odd.group()), text)
        super().write(text.encode(self._encoding, "replace"))
        return memoryview(data).nbytes


def _reader_is_gone(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)  # errors are always reported
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


app = typer.Typer(
    name="nmt",
    cls=_Commands,
    help="Neural machine translation with attention.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback()
def _nmt(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        typer.echo(f"nmt {nmt.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def _hang_up(terminals: Sequence[int], number: int, frame: FrameType | None) -> None:
    """Ends a command whose terminal was closed as SIGTERM does. What it says until then would fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in terminals:
        os.dup2(nowhere, stream)
    signal.raise_signal(signal.SIGTERM)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line (by default `sys.argv`) and exits."""
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # not after nohup
            signal.signal(signal.SIGHUP, partial(_hang_up, list(filter(os.isatty, range(3)))))
    command = typer.main.get_command(app)
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            raw: Any = getattr(sys.stdout.buffer, "raw", sys.stdout.buffer)  # python -u has no buffer
            encoding = sys.stdout.encoding
            sys.stdout = io.TextIOWrapper(_Terminal(raw, encoding), encoding, "replace", line_buffering=True)
        elif isinstance(sys.stdout.buffer, io.RawIOBase):  # python -u, which ignores incomplete writes
            buffered = os.fdopen(sys.stdout.fileno(), "wb", closefd=False)
            sys.stdout = io.TextIOWrapper(buffered, "utf-8", sys.stdout.errors)
        elif sys.stdout.encoding.lower() != "utf-8":
            sys.stdout.reconfigure(encoding="utf-8", errors=sys.stdout.errors)  # UTF-8 like files, for any locale
    if arguments[:1] == ["align"]:
        from nmt.cli.links import renamed

        arguments = renamed(arguments)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    try:
        # not standalone: it returns the code of a typer.Exit and 130 for Ctrl-C, and raises other errors
        code = command.main(args=arguments, prog_name="nmt", standalone_mode=False)
    except InputError as error:
        code = _fail(*error.messages, code=error.exit_code)
    except typer.TyperException as error:
        from nmt.cli.mistakes import describe

        context = getattr(error, "ctx", None) or typer.Context(command, info_name="nmt")
        code = _fail(describe(error, context, arguments, COMMANDS))
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        # errors of other files name them, by ``nmt.core.files.naming``
        code = _fail(f"{error.filename or 'stdout'}: {error.strerror}")
        if error.filename is None:  # buffered output is discarded; otherwise the interpreter would complain at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(*messages: str, code: int = 2) -> int:
    from nmt.core.terminal_width import printable

    for message in messages:
        print("error:", printable(" ".join(message.split())), file=sys.stderr)
    return code
