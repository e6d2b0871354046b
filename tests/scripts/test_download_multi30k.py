"""The download against a local web server: what is fetched, what is kept, and every way to fail."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from scripts import download_multi30k as script
from tests.scripts.conftest import serving

TEXTS = {"a.de.gz": b"ein Hund\n", "a.en.gz": b"a dog\n"}


class Handler(SimpleHTTPRequestHandler):
    served: list[str] = []  # noqa: RUF012 - one list for all requests is what is wanted

    def do_GET(self) -> None:
        self.served.append(self.path)
        super().do_GET()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder that is served, and its address."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_bytes(gzip.compress(text))
    monkeypatch.setattr(script, "SHA256", {name: hashlib.sha256(text).hexdigest() for name, text in TEXTS.items()})
    monkeypatch.setattr(Handler, "served", [])
    with serving(partial(Handler, directory=str(folder))) as server:
        yield folder, f"http://127.0.0.1:{server.server_port}"


def test_downloads_once_and_mends_what_is_wrong(site: tuple[Path, str], tmp_path: Path) -> None:
    target = tmp_path / "deep" / "multi30k"
    script.download(target, site[1])
    assert {path.name: gzip.decompress(path.read_bytes()) for path in target.iterdir()} == TEXTS
    assert Handler.served == ["/a.de.gz", "/a.en.gz"]

    (target / "a.en.gz").write_bytes(b"half a downlo")
    # The same text, compressed otherwise, is as good.
    (target / "a.de.gz").write_bytes(gzip.compress(TEXTS["a.de.gz"], 1, mtime=1))
    script.download(target, site[1])
    assert Handler.served == ["/a.de.gz", "/a.en.gz", "/a.en.gz"]
    assert gzip.decompress((target / "a.en.gz").read_bytes()) == TEXTS["a.en.gz"]


@pytest.mark.parametrize("data", [gzip.compress(b"another text\n", mtime=0), b"<html>a login page</html>", b"", None])
def test_another_text_or_none_is_refused(site: tuple[Path, str], tmp_path: Path, data: bytes | None) -> None:
    (site[0] / "a.en.gz").unlink()
    if data is not None:
        (site[0] / "a.en.gz").write_bytes(data)
    problem = "the server answered 404 File not found$" if data is None else "is not the text that was expected"
    with pytest.raises(script.DownloadError, match=f"a.en.gz: {problem}"):
        script.download(tmp_path / "out", site[1])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.de.gz"]


def test_no_network_and_a_place_that_cannot_be_written_are_said(site: tuple[Path, str], tmp_path: Path) -> None:
    with pytest.raises(script.DownloadError, match=r"not reached \(.*\); is there a network\?$"):
        script.download(tmp_path / "out", "http://127.0.0.1:1")
    (tmp_path / "file").write_text("")
    with pytest.raises(script.DownloadError, match="file: .*exists$"):
        script.download(tmp_path / "file", site[1])


def test_the_real_list_is_three_parts_in_two_languages() -> None:
    assert sorted(script.SHA256) == sorted(
        f"{part}.{language}.gz" for part in ("train", "val", "test_2016_flickr") for language in ("de", "en")
    )
    assert len(set(script.SHA256.values())) == 6
