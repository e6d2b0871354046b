"""Plug-ins: the rooms of nmt are found and not named, and a broken one of another package costs a line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from typer.testing import CliRunner

import nmt
from nmt import plugins
from nmt.cli import app as cli
from nmt.cli.app import OWN, app
from nmt.core.errors import InputError
from nmt.plugins import Plugin

PACKAGE = Path(nmt.__file__).parent
HEAD = "from nmt.plugins import *\n"


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path for another package, whose module of a plug-in is ``other_plugin``."""
    metadata = tmp_path / "other-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[nmt.plugins]\nany = other_plugin\n")
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("other_")]:
        del sys.modules[name]
    forget()


def forget() -> None:
    plugins._plugins.cache_clear()
    plugins._index.cache_clear()


def warnings(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_nothing_outside_names_a_room() -> None:
    outside = [path for path in PACKAGE.rglob("*") if path.is_file() and path.relative_to(PACKAGE).parts[0] != "extras"]
    texts = {path: path.read_text(encoding="utf-8") for path in outside if path.suffix in (".py", ".typed")}
    assert len(texts) > 100
    assert [path for path, text in texts.items() if re.search(r"nmt[./]extras", text)] == []


def test_each_reference_of_a_room_exists() -> None:
    rooms = {path.parent.name for path in (PACKAGE / "extras").glob("*/__init__.py")}
    assert rooms == {path.parent.name for path in (PACKAGE / "extras").glob("*/plugin.py")}
    for owner, plugin in plugins._plugins():
        if owner:
            continue
        kinds = {kind: values for kind, values in vars(plugin).items() if kind != "options"}
        values = [value for names in kinds.values() for value in names.values()]
        references = [getattr(value, "reference", value) for value in values]
        for reference in [*references, *(each for classes in plugin.options.values() for each in classes)]:
            module, _, name = reference.partition(":")
            assert hasattr(import_module(module), name), reference


def test_a_plugin_imports_nothing_but_its_interface() -> None:
    for path in (PACKAGE / "extras").glob("*/plugin.py"):
        imports = re.findall(r"^(?:from|import) (\S+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert set(imports) == {"__future__", "nmt.plugins"}, path


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import missing_module", "ModuleNotFoundError: No module named 'missing_module'"),
        (
            HEAD + "PLUGIN = Plugin(colour={})",
            "TypeError: Plugin.__init__() got an unexpected keyword argument 'colour'",
        ),
        ("PLUGIN = 1", "TypeError: is not a nmt.plugins.Plugin, and has none named PLUGIN"),
        ("def", "SyntaxError: invalid syntax (other_plugin.py, line 1)"),
    ],
)
def test_a_broken_plugin_is_left_out_with_a_warning(
    source: str, reason: str, other: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (other / "other_plugin.py").write_text(source)
    assert "ctranslate2" in plugins.entries("engines")
    assert warnings(capsys) == [
        f"warning: plug-in other: other_plugin: {reason}; update the package, or remove it: pip uninstall other"
    ]


def test_a_plugin_is_an_object_too(other: Path) -> None:
    (other / "other-1.0.dist-info" / "entry_points.txt").write_text("[nmt.plugins]\nany = other_plugin:mine\n")
    (other / "other_plugin.py").write_text(
        f"{HEAD}mine = Plugin(metrics={{'best': 'other_plugin:best'}})\nbest = max\n"
    )
    assert plugins.find("metrics", "best", "") is max


def test_a_name_that_is_taken_is_left_out(other: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (other / "other_plugin.py").write_text(
        f"{HEAD}PLUGIN = Plugin(engines={{'ctranslate2': Choice('a:b')}}, commands={{'train': Command('a:b')}})\n"
    )
    assert plugins.entries("engines")["ctranslate2"].reference.startswith("nmt.")
    assert "train" not in plugins.entries("commands", OWN)
    assert [line.partition("; ")[0] for line in warnings(capsys)] == [
        "warning: plug-in other: engines: ctranslate2: the name is taken",
        "warning: plug-in other: commands: train: the name is taken",
    ]


def test_what_cannot_be_imported_is_an_error_where_it_is_asked_for(
    other: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (other / "other_plugin.py").write_text(
        f"{HEAD}PLUGIN = Plugin(metrics={{'best': 'other_missing:best'}}, scores={{'best': 'other_plugin:PLUGIN'}})\n"
    )
    with pytest.raises(
        InputError, match=r"^plug-in other: other_missing:best: ModuleNotFoundError: .*uninstall other$"
    ):
        plugins.find("metrics", "best", "--metric best")
    assert dict(plugins.loaded("scores", Plugin)) == {}
    assert "other_plugin:PLUGIN: TypeError: is not a Plugin" in warnings(capsys)[0]
    with pytest.raises(InputError, match=r"^--metric worst: use one of best$"):
        plugins.find("metrics", "worst", "--metric worst")


OPTIONS = """
from dataclasses import dataclass
from typing import Annotated, ClassVar
import typer
from nmt.cli.conflicts import Needs
from nmt.plugins import Plugin

@dataclass(frozen=True)
class Loud:
    loud: Annotated[bool, typer.Option("--loud", help="Shout.")] = False
    after: ClassVar[str] = "force"
    more_help: ClassVar[dict[str, str]] = {"": " It can shout.", "force": " Or louder."}
    conflicts: ClassVar = (Needs("loud", "force", "--loud: needs --force"),)

@dataclass(frozen=True)
class Taken:
    force: int = 1

class Plain:
    after = "force"

OPTIONS = [f"other_plugin:{name}" for name in ("Loud", "Taken", "Plain", "Missing")]
PLUGIN = Plugin(options={"prepare": OPTIONS})
"""


def test_options_join_those_of_a_command(other: Path) -> None:
    (other / "other_plugin.py").write_text(OPTIONS)
    cli.build_command.cache_clear()
    try:
        result = CliRunner().invoke(app, ["prepare", "--help"])
        page, said = result.stdout, result.stderr.splitlines()
        assert re.search(
            r"nothing\. It can shout\..*--force +Prepare again .* Or louder\..*--loud +Shout", " ".join(page.split())
        )
        assert [line.partition("; ")[0].removeprefix("warning: plug-in other: other_plugin:") for line in said] == [
            "Taken: the name force is taken",
            "Plain: is not a frozen dataclass",
            "Missing: AttributeError: module 'other_plugin' has no attribute 'Missing'",
        ]
        assert str(CliRunner().invoke(app, ["prepare", "none.yaml", "--loud"]).exception) == "--loud: needs --force"
    finally:
        cli.build_command.cache_clear()


def test_completion_leaves_out_a_command_that_cannot_be_imported(other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (other / "other_plugin.py").write_text(
        f"{HEAD}PLUGIN = Plugin(commands={{'shout': Command('other_missing:run')}})\n"
    )
    monkeypatch.setitem(cast(Any, cli.COMMANDS), "shout", plugins.entries("commands")["shout"])
    group = typer.main.get_command(app)
    context = group.make_context("nmt", [], resilient_parsing=True)
    completed = [item.value for item in group.shell_complete(context, "s")]
    assert "score" in completed
    assert "shout" not in completed
    with pytest.raises(InputError, match=r"^plug-in other: other_missing:run: ModuleNotFoundError"):
        group.main(["shout"], prog_name="nmt", standalone_mode=False)
