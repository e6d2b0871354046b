"""Objects of fsspec's store in memory, translated as files are."""

from __future__ import annotations

import gzip
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from nmt.extras.cluster.addresses import address_of
from tests.workflows.runs import EXACT, in_process

TEXT = "der hund schläft\n\ndie katze läuft\n".encode()


@pytest.fixture
def store() -> Any:
    fsspec = pytest.importorskip("fsspec", reason="needs pip install fsspec")
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/a.de", TEXT)
    yield store
    store.rm("/bucket", recursive=True)


def test_an_object_is_read_and_sent_when_complete(
    store: Any, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def translate(source: str, target: str, *options: str) -> Any:
        return in_process(capsys, "translate", str(trained / "run"), *EXACT)("-i", source, "-o", target, *options)

    (tmp_path / "a.de").write_bytes(TEXT)
    assert "next: nmt align" in translate(str(tmp_path / "a.de"), str(tmp_path / "a.en")).stderr
    expected = (tmp_path / "a.en").read_bytes()
    done = translate("memory://bucket/a.de", "memory://bucket/out/a.en.gz")
    assert (done.code, "next:" in done.stderr) == (0, False)
    assert gzip.decompress(store.cat("/bucket/out/a.en.gz")) == expected
    assert translate("memory://bucket/a.de", str(tmp_path / "b.en")).code == 0
    assert (tmp_path / "b.en").read_bytes() == expected
    assert translate("memory://bucket/no.de", str(tmp_path / "c.en")).error == "memory://bucket/no.de: no such object"
    assert translate("memory://bucket/a.de", "memory://bucket/c.en", "--prefix", "none").code == 2
    refused = translate("memory://bucket/*.de", str(tmp_path / "d"), "--shard", "1/2").error
    assert refused.startswith("memory://bucket/*.de: --ray and --shard read and write files")
    assert translate("none://bucket/a.de", str(tmp_path / "c.en")).error.startswith(
        "none://bucket/a.de: cannot be read"
    )
    same = ("memory://bucket/a.de", "memory://bucket/a.de")
    assert translate(*same).error == "--output memory://bucket/a.de: is the input of this command; name another object"
    assert not store.exists("/bucket/c.en")
    assert not (tmp_path / "c.en").exists()


def test_what_cannot_be_sent_stays(
    store: Any, trained: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no rights")

    monkeypatch.setattr(type(store), "put_file", refuse)
    done = in_process(capsys, "translate", str(trained / "run"))(
        "-i", "memory://bucket/a.de", "-o", "memory://bucket/b"
    )
    found = re.fullmatch(r"memory://bucket/b: cannot be written, and stays in (\S+): no rights", done.error)
    assert found is not None
    assert Path(found[1]).read_text(encoding="utf-8").count("\n") == 3
    shutil.rmtree(Path(found[1]).parent)


def test_without_fsspec(trained: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    done = in_process(capsys, "translate", str(trained / "run"))("-i", "s3://bucket/a.de")
    assert done.error == "s3://bucket/a.de: is an address, for which run: pip install fsspec"


@pytest.mark.parametrize("name", ["a.de", "C:/a.de", "a:b", "file:///a.de", "local:///a.de", "x/s3:/a", "/dev/stdin"])
def test_files_are_no_addresses(name: str) -> None:
    assert address_of(Path(name)) is None
