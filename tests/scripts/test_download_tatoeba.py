"""The download of Tatoeba, from a file and from a local web server: the split, and every way to fail."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from nmt.experiment import load
from scripts import download_tatoeba as script
from tests.scripts.conftest import ROOT, serving


def archive(text: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as files:
        files.writestr("deu.txt", text)
        files.writestr("_about.txt", "about")
    return data.getvalue()


def corpus(count: int = 400) -> str:
    """Lines in which many sentences have several translations; some lines come twice."""
    draw = random.Random(3).randrange
    return "".join(f"english {draw(150)}\tdeutsch {draw(150)}\tCC-BY 2.0 #{draw(9)}\n" for _ in range(count))


def read(folder: Path, part: str) -> list[tuple[str, str]]:
    sides = (
        gzip.decompress((folder / f"{part}.{side}.gz").read_bytes()).decode().splitlines() for side in ("de", "en")
    )
    return list(zip(*sides, strict=True))


def test_no_held_out_sentence_is_anywhere_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "deu-eng.zip"
    file.write_bytes(archive(corpus()))
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        script.download(tmp_path / name, archive=file, valid=10, test=20, seed=seed)
    parts = {part: read(tmp_path / "a", part) for part in ("train", "valid", "test")}
    assert (len(parts["valid"]), len(parts["test"])) == (10, 20)
    whole = {(line.split("\t")[1], line.split("\t")[0]) for line in corpus().splitlines()}
    held_out = parts["valid"] + parts["test"]
    for side in (0, 1):
        sentences = [pair[side] for pair in held_out]
        assert len(set(sentences)) == 30
        assert not set(sentences) & {pair[side] for pair in parts["train"]}
    kept = [*parts["train"], *held_out]
    assert len(set(kept)) == len(kept)
    touched = {pair for pair in whole if any(pair[side] == held[side] for held in held_out for side in (0, 1))}
    assert set(parts["train"]) == whole - touched
    assert f"{len(touched) - 30} with a sentence of valid or test" in capsys.readouterr().out
    a, b, c = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in "abc")
    assert len(a) == 6
    assert a == b
    assert a["test.de.gz"] != c["test.de.gz"]


def test_it_is_fetched_and_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "spa-eng.zip").write_bytes(archive(corpus()))
    with serving(partial(SimpleHTTPRequestHandler, directory=str(tmp_path))) as server:
        source = f"http://127.0.0.1:{server.server_port}"
        script.download(tmp_path / "es", language="es", source=source, valid=10, test=20)
        with pytest.raises(script.DownloadError, match="deu-eng.zip: the server answered 404 File not found"):
            script.download(tmp_path / "de", source=source)
    assert len(list((tmp_path / "es").glob("*.es.gz"))) == 3
    with pytest.raises(script.DownloadError, match="es: holds a corpus already; delete it"):
        script.download(tmp_path / "es", language="es", source=source)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<html>a login page</html>", "is no archive of sentence pairs"),
        (archive("Hi.\tHallo.\nGo.\n"), "line 2 of deu.txt is not English, TAB, its translation"),
        (archive("Hi.\tHallo.\n"), "1 pairs are too few to hold 1,000 and 2,000 out"),
    ],
    ids=["a page", "one column", "too few"],
)
def test_what_is_no_corpus_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(script.DownloadError, match=message):
        script.download(tmp_path / "out", archive=tmp_path / "x.zip")
    with pytest.raises(script.DownloadError, match="none.zip: No such file"):
        script.download(tmp_path / "out", archive=tmp_path / "none.zip")
    assert not (tmp_path / "out").exists()


def test_the_configuration_reads_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.zip").write_bytes(archive(corpus()))
    script.download(tmp_path / "out", archive=tmp_path / "x.zip", valid=10, test=20)
    monkeypatch.setenv("TATOEBA", str(tmp_path / "out"))
    loaded = load(ROOT / "configs" / "tatoeba-de-en.yaml", with_corpora=True)
    files = [file for corpus in (*loaded.data.train_corpora, *loaded.data.test_corpora) for file in corpus.files]
    assert [file.name for file in files] == ["train.de.gz", "train.en.gz", "test.de.gz", "test.en.gz"]
