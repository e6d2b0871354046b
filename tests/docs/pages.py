"""The commands that pages show."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "examples" / "README.md",
    ROOT / "data" / "generator" / "README.md",
]

_BLOCK = re.compile(r"(?:^    .*\n)(?:^(?:    .*)?\n)*", flags=re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)


def code_lines(text: str) -> list[str]:
    """The lines of code that stands indented, without the indent; those that go on after a backslash are joined."""
    blocks = re.sub(r"\s*\\\n\s*", " ", "\n".join(_BLOCK.findall(_FENCED.sub("", text))))
    return [line.removeprefix("    ") for line in blocks.splitlines()]


_PROGRAMS = (
    "awk|bash|cat|cd|cmake|cp|curl|cut|docker|echo|for|git|grep|head|ln|make|mkdir|mv|nmt|paste|pip|python3?|ray|"
    "sacrebleu|sbatch|sed|sh|sort|srun|sudo|tail|torchrun|wget"
)

_COMMAND = re.compile(
    rf"\s*(?:\$ (?P<typed>.+)|(?:\d  )?(?P<bare>(?:\w+=\S+ )*(?:{_PROGRAMS}|\.(?= )|export(?= \w+=))(?= ).*))"
)

_SAID = re.compile(r" +# .*| {3,}.*")
"""Pattern of a page's explanation of a command, on the same line."""


def commands(page: Path) -> list[str]:
    """Returns the commands that a page shows, in order, after a prompt or without one, whole or in outline."""
    found = map(_COMMAND.fullmatch, code_lines(page.read_text("utf-8")))
    return [_SAID.sub("", (each["typed"] or each["bare"]).rstrip()) for each in found if each]


@dataclass(frozen=True)
class Shown:
    """A command of nmt as a page shows it."""

    command: str
    options: tuple[str, ...]


_OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
_USE = re.compile(r"\s*(?:\$ |\w+=\S+ )*nmt ([a-z]+)( .*)?")


def shown(page: Path) -> list[Shown]:
    """Every use of nmt in the code of a page, whole or in outline, with its options."""
    code = "\n".join(line.partition("  #")[0] for line in code_lines(page.read_text("utf-8")))
    uses = (_USE.fullmatch(use.rstrip()) for use in re.split(r"\||&&|;|<|>|\n", code))
    return [Shown(use[1], tuple(_OPTION.findall(use[2] or ""))) for use in uses if use]
