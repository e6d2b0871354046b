"""The installed distribution, and how to add one of its extras."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shlex import quote
from urllib.parse import unquote, urlsplit

from nmt.core.errors import InputError

NAME = "nmt-attention"
"""Name of the distribution on PyPI; the package and the command are called nmt."""


def missing(what: str, extra: str) -> InputError:
    """The error for a package that is not installed, with the command that installs the extra which has it."""
    return InputError(f"{what} not installed: {install_command(extra)}")


def install_command(extra: str) -> str:
    """The command that adds an extra to nmt as it was installed: used in a clone, or from a folder, a wheel, a
    repository or PyPI (direct_url.json, PEP 610)."""
    clone = Path(__file__).parents[2]
    if (clone / "pyproject.toml").exists():
        return "pip install -e " + quote(f"{clone}[{extra}]")
    try:
        origin = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        origin = {}
    url = origin.get("url", "")
    if url.startswith("file:"):
        return "pip install " + quote(f"{unquote(urlsplit(url).path)}[{extra}]")
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}"
    return "pip install " + quote(f"{NAME}[{extra}]" + (f" @ {url}" if url else ""))
