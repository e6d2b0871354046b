"""Sentence pairs on the command line: as two options, as one file of pairs, or as arguments."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from nmt.cli import app as cli
from tests.cli.conftest import mistakes
from tests.workflows.runs import Command


@pytest.mark.parametrize("name", ["align", "score", "evaluate", "aligner", "states", "filter", "languages", "init"])
def test_pairs_are_two_files_or_one_as_options_or_arguments(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("a", "b", "c.yaml"):
        Path(file).touch()
    Path("run").mkdir()
    for archive, member in (("model.zip", "run/config.yaml"), ("pairs.zip", "x.de")):
        with ZipFile(archive, "w") as packed:
            packed.writestr(member, "")
    command = cli.build_command(name)
    own = {"init": ["new"], "filter": [], "languages": []}.get(name, ["run"])
    arguments = [each.name for each in command.params if each.param_type_name == "argument"]
    second = "reference" if name == "evaluate" else "target"

    def sides(*words: str) -> tuple[object, ...]:
        context = command.context_class(command, info_name=name)
        command.parse_args(context, list(words))
        assert "tsv" not in context.params
        return tuple(context.params[each] for each in (*arguments, "source", second))

    two, one = (*own, Path("a"), Path("b")), (*own, Path("a"), Path("a"))
    options = (f"--{second}", "b", "--source", "a")
    assert sides(*own, "a", "b") == sides(*own, *options) == sides("--quiet", *own, "a", "b") == two
    assert sides(*own, "--tsv", "a") == sides(*own, "a") == one
    if own == ["run"]:
        assert sides("a", "b") == (None, *two[1:])
        assert sides("a") == (None, *one[1:])
        assert sides("c.yaml", "a") == ("c.yaml", *one[1:])
        assert sides("model.zip", "a") == ("model.zip", *one[1:])
        assert sides("pairs.zip") == (None, Path("pairs.zip"), Path("pairs.zip"))
    if name == "init":
        assert sides("new", "--tsv", "a", "--valid-tsv", "b") == one


MISTAKES = {
    "score": "--source and --target: missing; or name the files: nmt score FILE FILE",
    "filter --tsv x -s y": "--tsv holds both sides; leave out --source, or it",
    "align no/such README.md": "no/such: no such run, configuration or text file",
    "align runs/z a b c": "c: an argument too many: nmt align [MODEL] [FILE FILE]",
    "init README.md LICENSE": "NAME is missing: nmt init NAME README.md LICENSE",
}
test_mistakes = mistakes("", MISTAKES)


@pytest.mark.parametrize("command", ["score run", "align run", "evaluate --by-length run", "align --learn"])
def test_a_file_of_pairs_gives_what_two_files_give(
    command: str, trained: Path, tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").symlink_to(trained / "run")
    sources, targets = ["der hund", "", "eine katze", "xyz"], ["the dog", "a", "a cat and a dog", ""]
    for name, lines in (("two.de", sources), ("two.en", targets), ("one.tsv", map("{}\t{}".format, sources, targets))):
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    two, *one = (
        run(*command.split(), *files, "--quiet").stdout
        for files in (["two.de", "two.en"], ["one.tsv"], ["--tsv", "one.tsv"])
    )
    assert two.count("\n") >= len(sources)
    assert one == [two, two]
