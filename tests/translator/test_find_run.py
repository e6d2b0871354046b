"""Models that were handed on: run directories without what training needs, and archives of them."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest

import nmt
from tests.workflows.runs import Command, in_process, json_lines, write_lines

TEXTS = ["Hund und Katze.", "eins zwei"]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in an empty folder, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return in_process(capsys)


@pytest.mark.parametrize("name", ["handed", "handed.zip"])
def test_every_command_takes_what_export_writes(
    name: str, command: Command, translator: nmt.Translator, trained: Path, tmp_path: Path
) -> None:
    assert f"wrote {name}" in command("export", trained / "run", "--to", "nmt", "--output", name).stderr
    for file in ("x.de", "x.en"):
        write_lines(file, TEXTS)
    exact, both = ("--device", "cpu", "--precision", "float32"), ("--source", "x.de", "--target", "x.en")
    lines = command("translate", name, "--input", "x.de", *exact).output.splitlines()
    assert lines == [each.text for each in translator.translate(TEXTS)]
    lines = command("score", name, *both, "--format", "jsonl", *exact).output.splitlines()
    scores = [each.score for each in translator.score(TEXTS, TEXTS)]
    assert [json.loads(line)["score"] for line in lines] == pytest.approx(scores, abs=1e-5)
    for arguments in (
        ("evaluate", name, "--source", "x.de", "--reference", "x.en", *exact),
        ("align", name, *both, *exact),
        ("align", name, *both, "--format", "html", "--output", "page.html", *exact),
        ("info", name),
        ("states", name, *both, "--output", "states.svg", "--line", "1"),
        ("report", name, "--no-translations"),
        ("export", name, "--to", "nmt", "--output", "again.zip"),
    ):
        done = command(*arguments)
        assert done.code == 0, (arguments, done.stderr)
    assert (tmp_path / ("handed.html" if name.endswith("zip") else "handed/report.html")).exists()
    assert nmt.load("again.zip", device="cpu", precision="float32").translate(TEXTS) == translator.translate(TEXTS)


def test_the_card_has_data_figures_and_licence_and_an_own_one_stays(
    command: Command, translator: nmt.Translator, trained: Path, tmp_path: Path
) -> None:
    translator.save(tmp_path / "one")
    card = (tmp_path / "one" / "README.md").read_text()
    loss = json_lines(trained / "run" / "metrics.jsonl")[-1]["loss"]
    assert f"- loss on the validation corpus: {loss:.4g}\n" in card
    assert "- train.de + train.en\n- pairs that it was trained on: 60\n" in card
    assert "## Licence\n\nNot stated." in card
    (tmp_path / "one" / "README.md").write_text("CC0")
    nmt.load(tmp_path / "one", device="cpu").save("two.zip")
    with zipfile.ZipFile("two.zip") as archive:
        assert archive.read("two/README.md") == b"CC0"
        assert not [name for name in archive.namelist() if "training" in name or "prepared" in name]
    (tmp_path / "mine").mkdir()
    with pytest.raises(nmt.InputError, match="mine: is there and is not an export of ours"):
        translator.save(tmp_path / "mine")


def test_a_run_that_lacks_what_training_needs_is_found(command: Command, trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "given"
    shutil.copytree(trained / "run", run, symlinks=True)
    for name in ("metrics.jsonl", ".order", "best", "latest"):
        (run / name).unlink()
    shutil.rmtree(run / "prepared")
    (run / "checkpoints" / "step-00000002" / "training.safetensors").unlink()
    Path("x.de").write_text("eins\n")
    assert command("translate", "--input", "x.de").code == 0
    assert command("info").code == 0
    assert "metrics.jsonl is missing, as of a model that was handed on" in command("report", "--no-translations").stderr
    for side in ("train.de", "train.en", "valid.de", "valid.en"):
        shutil.copy(trained / side, tmp_path)
    error = command("train", trained / "config.yaml", "--set", f"run={run}", "--precision", "float32").error
    assert error.endswith(f"has no training.safetensors to go on from; try nmt init NAME --from {run}")


def archive_of(files: dict[str, bytes]) -> bytes:
    with zipfile.ZipFile(stream := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def test_archives_of_strangers_are_refused_or_stay_in_their_folder(command: Command, tmp_path: Path) -> None:
    archive = tmp_path / "strange.zip"
    for content, message in (
        (b"PK", "cannot be unpacked: File is not a zip file"),
        (archive_of({"../config.yaml": b"run: x", "x/notes.txt": b"a"}), "holds no model; make one with nmt export"),
        (archive_of({"a/config.yaml": b"", "b/config.yaml": b""}), "holds no model; make one with nmt export"),
        (archive_of({"a/config.yaml": b"#" * 5_000_000}), "cannot be unpacked: it is far larger unpacked"),
    ):
        archive.write_bytes(content)
        assert command("info", "strange.zip").error.startswith(f"strange.zip: {message}")
    assert all(path.is_relative_to(tmp_path / "cache" / "nmt") for path in tmp_path.rglob("config.yaml"))
