"""Models of the Hugging Face Hub, against a server on this machine that answers as the Hub does."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.extras.exchange.convert.marian_folders import SHAPES, write

pytest.importorskip("transformers")

COMMIT = "a" * 40
NAME = "owner/tiny-de-en"


class Hub(ThreadingHTTPServer):
    """Has one repository, the files of a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.sent: list[str] = []
        self.cuts = False


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        names = sorted(each.name for each in self.server.folder.iterdir())
        info = {"id": NAME, "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
        api = f"/api/models/{NAME}"
        if path in (api, f"{api}/revision/main", f"{api}/revision/{COMMIT}"):
            self._send(200, json.dumps(info).encode())
        elif path.startswith(f"{api}/tree/"):
            sizes = {name: (self.server.folder / name).stat().st_size for name in names}
            tree = [{"type": "file", "path": name, "size": size, "oid": name} for name, size in sizes.items()]
            self._send(200, json.dumps(tree).encode())
        elif path.startswith(f"/{NAME}/resolve/") and (name := path.rpartition("/")[2]) in names:
            if self.command == "GET":
                self.server.sent.append(name)
            content = (self.server.folder / name).read_bytes()
            self._send(200, content, ETag=f'"{hashlib.sha256(content).hexdigest()}"')
        else:
            self._send(404, b"{}", **{"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET

    def _send(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "X-Repo-Commit": COMMIT, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[:100] if self.server.cuts and len(content) > 5000 else content)

    def log_message(self, *arguments: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    server = Hub(write(tmp_path_factory.mktemp("hub") / "there", SHAPES["pickled"]))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def nmt_import(name: str, endpoint: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(folder / "cache"), **environment}
    command = [sys.executable, "-m", "nmt", "import", "hf", name, "--quiet"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_model_is_downloaded_once_and_imported(hub: Hub, tmp_path: Path) -> None:
    """A second import needs no network; a file that is no part of the model is not downloaded."""
    (hub.folder / "tf_model.h5").write_bytes(b"")
    done = nmt_import(NAME, f"http://127.0.0.1:{hub.server_port}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "tiny-de-en" / "best" / "model.safetensors").exists()
    assert f"name: {NAME}" in (tmp_path / "runs" / "tiny-de-en" / "config.yaml").read_text()
    assert "tf_model.h5" not in hub.sent
    assert len(hub.sent) == len(set(hub.sent)) >= 5
    (tmp_path / "runs").rename(tmp_path / "before")
    offline = nmt_import(NAME, "http://127.0.0.1:9", tmp_path, HF_HUB_OFFLINE="1")
    assert offline.returncode == 0, offline.stderr


def refused(name: str, endpoint: str, folder: Path) -> None:
    """Asserts that an import fails in one line."""
    done = nmt_import(name, endpoint, folder)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {name}: cannot be downloaded: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["owner/other", "no-one/-", NAME])
def test_a_model_that_cannot_be_had_is_refused_in_one_line(name: str, hub: Hub, tmp_path: Path) -> None:
    """It is not there, the name is not allowed, or the connection breaks."""
    hub.cuts = True
    refused(name, f"http://127.0.0.1:{hub.server_port}", tmp_path)


def test_without_a_network_the_name_is_refused_in_one_line(tmp_path: Path) -> None:
    refused(NAME, "http://127.0.0.1:9", tmp_path)
