"""Writing files safely."""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from nmt.core.files import replace_file, whole_file
from tests.workflows.killing import fork


def test_a_disk_that_safetensors_finds_full_is_an_error_of_the_system(tmp_path: Path) -> None:
    """Its own exception is no OSError, which the command line would show as a fault of ours."""

    def save() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        try:
            with whole_file(tmp_path / "a.safetensors") as partial:
                safetensors.numpy.save_file({"a": np.zeros(9000)}, partial)
        except OSError as error:
            os.write(3, f"{error.filename}: {error.strerror}".encode())
            sys.exit(2)

    assert fork(save) == (2, f"{tmp_path / 'a.safetensors'}: File too large")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_replaced_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_file(tmp_path / "a", "old")
    (tmp_path / ".a.unfinished").write_text("left by a killed process, and longer")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", lambda path, data: os.write(-1, data))
        with pytest.raises(OSError, match="Bad file descriptor") as refused:
            replace_file(tmp_path / "a", b"new")
    assert refused.value.filename == str(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "old"
    replace_file(tmp_path / "a", b"new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "new")]
