"""Files of `--output`: old or whole, never half; devices and pipes as they are."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import signal
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.data.corpus import read_lines
from nmt.workflows.output_files import output_file, text_file
from tests.workflows.killing import fork
from tests.workflows.runs import call, nmt


def test_an_interrupted_output_leaves_the_old_one_and_names_the_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out"
    path.write_text("old\n")
    with pytest.raises(KeyboardInterrupt), text_file(path) as stream:  # noqa: PT012
        stream.write("new\n")
        raise KeyboardInterrupt
    (part,) = tmp_path.glob(".out.partial-*")
    assert (path.read_text(), part.read_text()) == ("old\n", "new\n")
    assert capsys.readouterr().err == f"warning: {path}: not written; what was done until then is in {part}\n"


def test_a_killed_process_leaves_the_old_output(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old\n")

    def work() -> None:
        with output_file(path) as stream:
            stream.write(b"new")
            stream.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    assert fork(work)[0] == -signal.SIGKILL
    assert path.read_text() == "old\n"


def test_an_output_keeps_its_link_and_its_mode(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old\n")
    (tmp_path / "out").chmod(0o600)
    (tmp_path / "link").symlink_to("out")
    with output_file(tmp_path / "link") as stream:
        stream.write(b"new\n")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "out").read_text() == "new\n"
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out"]


@pytest.mark.parametrize(
    ("ending", "unpack"), [(".gz", gzip.decompress), (".xz", lzma.decompress), (".BZ2", bz2.decompress), (".zst", None)]
)
def test_the_end_of_a_name_tells_the_compression(
    ending: str, unpack: Callable[[bytes], bytes] | None, trained: Path, tmp_path: Path
) -> None:
    lines = b"eins zwei\n\ndrei\n"
    plain = call(trained, "translate", "run", "--precision", "float32", stdin=lines).output
    path = tmp_path / f"out{ending}"
    assert call(trained, "translate", "run", "--precision", "float32", "-o", path, stdin=lines).output == ""
    unpack = unpack or pytest.importorskip("backports.zstd").decompress
    assert unpack(path.read_bytes()).decode() == plain
    assert list(read_lines(path)) == plain.splitlines()


def test_devices_and_pipes_are_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        reader = pool.submit(pipe.read_bytes)
        with output_file(pipe) as stream:
            stream.write(b"line\n")
        assert reader.result(60) == b"line\n"
    with output_file(Path("/dev/null")) as stream:
        stream.write(b"line\n")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(InputError, match=r"--output .*: cannot be written: Is a directory"), output_file(tmp_path):
        pass
    with pytest.raises(OSError, match="No space left") as caught, output_file(Path("/dev/full")) as stream:
        stream.write(b"line\n")
    assert caught.value.filename == "/dev/full"


def test_the_commands_write_whole_files_and_to_stdout_by_its_path(trained: Path, tmp_path: Path) -> None:
    translate = ["translate", "run", "--input", "test.de", "--precision", "float32", "--output"]
    files = ["--source", "test.de", "--target", "test.en", "--precision", "float32", "--output"]
    for words in (translate, ["score", "run", *files], ["align", "run", *files]):
        output = tmp_path / words[0]
        output.write_text("old\n")
        os.link(output, tmp_path / "old")  # what is replaced by name stays what it was
        assert call(trained, *words, output).code == 0
        assert (tmp_path / "old").read_text() == "old\n"
        assert nmt(*words, "/dev/stdout", folder=trained).stdout == output.read_bytes()
        (tmp_path / "old").unlink()
