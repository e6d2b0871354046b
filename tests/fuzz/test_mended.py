"""Faults that fuzzing and reading have found, each by its smallest case."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from nmt import experiment as experiments
from nmt.alignment.formats import NpzWriter, parse_gold, parse_json, read_npz
from nmt.alignment.link_files import TsvWriter, read_links
from nmt.config.structure import validate
from nmt.config.yaml_source import parse_document
from nmt.core.errors import LONGEST, InputError
from nmt.core.files import read_json, read_whole
from nmt.data.corpus import read_lines
from nmt.data.store import Store
from nmt.data.tokenizer import Tokenizer
from nmt.extras.aligner.aligner import IndexedSentences, learn_aligner, load_aligner, save_aligner
from nmt.extras.aligner.layer import AlignmentLayer, load_layer, save_layer
from nmt.extras.cluster.manifest import ShardManifest
from nmt.extras.exchange.export.export_model import exported_about
from nmt.training import checkpoint
from nmt.training.run_directory import read_lengths, read_state
from nmt.translator.loading import load_trained
from tests.fuzz.readers import ALIGNMENTS, CONFIG, SENTENCES, make_run, make_store


def test_a_message_that_quotes_a_long_line_is_short() -> None:
    with pytest.raises(InputError) as caught:
        parse_gold("0-0 " + "[" * 20_000)
    assert len(str(caught.value)) < LONGEST + 50


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_json_that_is_nested_too_deeply(tmp_path: Path, text: str) -> None:
    for name in ("state.json", "store.json", "lengths.json", "nmt.json", ".manifest.json"):
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match="nested"):
        read_json(tmp_path / "state.json")
    readers: list[Callable[[], object]] = [
        lambda: read_state(tmp_path),
        lambda: read_lengths(tmp_path),
        lambda: Store.open(tmp_path),
        lambda: exported_about(tmp_path, remedy="x"),
        lambda: ShardManifest.load(tmp_path),
        lambda: parse_json(text, place="links:1"),
    ]
    for read in readers:
        with pytest.raises(InputError):
            read()


@pytest.mark.parametrize(
    "lengths", ["[]", '{"usual": 1e400, "longest": 1}', '{"usual": -1, "longest": 9}', '{"usual": 0, "longest": 0}']
)
def test_lengths_that_are_none(tmp_path: Path, lengths: str) -> None:
    (tmp_path / "lengths.json").write_text(lengths)
    with pytest.raises(InputError, match="damaged"):
        read_lengths(tmp_path)


def _json(**changed: object) -> str:
    found = {
        "source_words": ["a"], "target_words": ["b"], "links": [[0, 0]], "level": "word", "source_tokens": ["a"],
        "target_tokens": ["b"], "weights": [[1.0]], "scores": [1.0], "sure": [[0, 0]],
    }  # fmt: skip
    return json.dumps(found | changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"links": [[0.5, 0]]}, {"links": [[float("inf"), 0]]},
        {"weights": [[float("nan")]]}, {"weights": [[1e308]]},
        {"scores": [float("inf")]}, {"level": "letter"}, {"source_words": [1], "source_tokens": [1]},
        {"source_words": ["a\tb"], "source_tokens": ["a\tb"]},
        {"source_words": ["\ud800"], "source_tokens": ["\ud800"]},
        {"source_spans": [[5, 2]]}, {"source_spans": [[-1, 2]]}, {"sure": [[0, 0], [0, 9]]}, {"source_tokens": ["x"]},
    ],
    ids=str,
)  # fmt: skip
def test_json_of_an_alignment_that_none_is(changed: dict[str, object]) -> None:
    parse_json(_json(), place="links:1")
    with pytest.raises(InputError, match="links:1: not an alignment"):
        parse_json(_json(**changed), place="links:1")


def _npz(path: Path, change: Callable[[dict[str, bytes]], None], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    with NpzWriter(path) as writer:
        for each in ALIGNMENTS:
            writer.write(each)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def _claiming(shape: str) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        packed = io.BytesIO()
        np.lib.format.write_array_header_1_0(packed, {"descr": "<f4", "fortran_order": False, "shape": (1,)})
        members["weights.npy"] = packed.getvalue().replace(b"(1,)", shape.encode())

    return change


def _pickled(members: dict[str, bytes]) -> None:
    packed = io.BytesIO()
    np.lib.format.write_array(packed, np.array([print], dtype=object), allow_pickle=True)
    members["weights.npy"] = packed.getvalue()


def _with_nan(members: dict[str, bytes]) -> None:
    members["weights.npy"] = members["weights.npy"][:-4] + struct.pack("<f", float("nan"))


def _no_utf8(members: dict[str, bytes]) -> None:
    members["source_words.npy"] = members["source_words.npy"].replace(b"a\n", b"\xff\n")


@pytest.mark.parametrize(
    "change", [_claiming("(1000000000000,)"), _claiming("(-1,)"), _claiming("((((1,)"), _pickled, _with_nan, _no_utf8]
)
def test_an_archive_that_lies(tmp_path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    assert len(list(read_npz(_npz(tmp_path / "good.npz", lambda members: None)))) == len(ALIGNMENTS)
    with pytest.raises(InputError, match="not an archive that nmt align"):
        list(read_npz(_npz(tmp_path / "bad.npz", change)))


def test_an_archive_packed_otherwise(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another way than by deflate"):
        list(read_npz(_npz(tmp_path / "bad.npz", lambda members: None, zipfile.ZIP_LZMA)))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("999999999", "pair 999999999"),
        ("9" * 5000, "not a number from 0"),
        ("1\t0\t0\ta\tb\tnan", "score 'nan' is not a number"),
    ],
    ids=["gap", "digits", "score"],
)
def test_a_table_with_numbers_that_are_none(tmp_path: Path, row: str, message: str) -> None:
    stream = io.StringIO()
    TsvWriter(stream)
    cells = row.split("\t") + [""] * 11
    (tmp_path / "links.tsv").write_text(stream.getvalue() + "\t".join(cells[:11]) + "\n")
    with pytest.raises(InputError, match=message):
        list(read_links(tmp_path / "links.tsv"))


def _chained(count: int, entry: str) -> str:
    """Lists of lists by aliases: each holds what ``entry`` makes of the one before."""
    lines = ["k0: &k0 [x]"]
    lines += [f"k{number}: &k{number} [{entry.replace('@', f'*k{number - 1}')}]" for number in range(1, count)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 50_000,
        "- " * 20_000,
        _chained(300, "@"),
        _chained(12, "@, @, @, @, @, @, @, @, @"),
        "a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 200 + "]",
        "seed: " + "9" * 5000,
    ],
    ids=["brackets", "dashes", "chain", "laughs", "long text", "digits"],
)
def test_a_configuration_that_is_a_bomb(text: str) -> None:
    began = time.monotonic()
    with pytest.raises(InputError, match="c.yaml"):
        parse_document(text, "c.yaml")
    assert time.monotonic() - began < 10


def test_a_configuration_that_is_no_text_of_a_bearable_length(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("#" * (2 << 20))
    with pytest.raises(InputError, match="has more than 1 MiB"):
        experiments.load(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    "setting",
    [
        'run="a\\0b"', 'data.train.source="a\\0b"', "model.encoder.size=1000000000000", "model.encoder.layers=1000000",
        "search.max_length_ratio=1e300", "search.length_penalty=1e300", "data.train.9999999999999999999999=1",
        pytest.param(".".join("a" * 2000) + "=1", id="deep"),
    ],
)  # fmt: skip
def test_settings_that_no_machine_can_bear(setting: str) -> None:
    with pytest.raises(InputError):
        validate(experiments.Experiment, parse_document(CONFIG, "c.yaml", [setting]))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_or_device_in_place_of_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        readers: list[Callable[[Path], object]] = [
            lambda path: read_whole(path, most=100), Tokenizer.load, experiments.load, checkpoint.read_tensors,
            lambda path: load_layer(path, model="", remedy=""), lambda path: list(read_npz(path)),
        ]  # fmt: skip
        for read in readers:
            with pytest.raises(InputError, match="is a device or a pipe"):
                read(tmp_path / name)
    with pytest.raises(InputError, match="more than 64 MiB"):
        list(read_links(tmp_path / "zero"))


def test_an_xz_file_that_asks_for_a_gigabyte(tmp_path: Path) -> None:
    small = lzma.compress(b"a\n")
    (tmp_path / "good").write_bytes(small + b"\0\0\0\0" + small)
    assert list(read_lines(tmp_path / "good")) == ["a", "a"]
    # a block whose header asks for a dictionary of 4 GiB - 1; its checksum is right
    header = small[12:24]
    huge = bytearray(header[:-4])
    huge[huge.index(b"\x21\x01") + 2] = 40
    (tmp_path / "huge").write_bytes(
        small[:12] + bytes(huge) + struct.pack("<I", __import__("zlib").crc32(bytes(huge))) + small[24:]
    )
    with pytest.raises(InputError, match="more than 256 MiB of memory to unpack"):
        list(read_lines(tmp_path / "huge"))
    (tmp_path / "cut").write_bytes(small[:-8])
    with pytest.raises(InputError, match="damaged or cut short"):
        list(read_lines(tmp_path / "cut"))


def test_a_bomb_of_gzip_is_read_in_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(64 << 20)))
    with pytest.raises(InputError, match="a line of more than 16 MiB"):
        list(read_lines(tmp_path / "bomb.gz"))


def _described(folder: Path, change: Callable[[dict[str, object]], None]) -> None:
    make_store(folder)
    tree = json.loads((folder / "store.json").read_text())
    change(tree)
    (folder / "store.json").write_text(json.dumps(tree))


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.update(pairs=10**30),
        lambda tree: tree.update(pairs=float("inf")),
        lambda tree: tree.update(pairs=5),
        lambda tree: tree["columns"].update({"source": ["|O", 1]}),
        lambda tree: tree["columns"].update({"../../secret": ["|u1", 1]}),
        lambda tree: tree["columns"].pop("line"),
        lambda tree: tree["corpora"][0].update(weight=float("nan")),
        lambda tree: tree["corpora"][0].update(name=7),
    ],
)
def test_a_store_that_describes_what_it_is_not(tmp_path: Path, change: Callable[[dict[str, object]], None]) -> None:
    _described(tmp_path / "store", change)
    with pytest.raises(InputError, match="damaged; delete it"):
        Store.open(tmp_path / "store")


@pytest.mark.parametrize(
    ("file", "place", "value"),
    [("target.bin", 0, 250), ("source.offsets.bin", 8, 200), ("corpus.bin", 0, 9), ("links.offsets.bin", 8, 1)],
)
def test_a_store_with_numbers_out_of_their_place(tmp_path: Path, file: str, place: int, value: int) -> None:
    make_store(tmp_path / "store")
    Store.open(tmp_path / "store").check(100, 100)
    data = bytearray((tmp_path / "store" / file).read_bytes())
    data[place] = value
    (tmp_path / "store" / file).write_bytes(data)
    with pytest.raises(InputError, match="damaged; delete it"):
        Store.open(tmp_path / "store").check(100, 100)


def test_a_store_with_text_that_is_none(tmp_path: Path) -> None:
    make_store(tmp_path / "store")
    (tmp_path / "store" / "source.text.bin").write_bytes(b"\xff" * 10)
    store = Store.open(tmp_path / "store")
    with pytest.raises(InputError, match="damaged; delete it"):
        store.text(0)


def test_a_subword_model_of_an_unknown_kind(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    model = (tmp_path / "run" / "subwords.model").read_bytes()
    tokenizer = Tokenizer(model + b"\x12\x02\x18\x4d", name="odd.model")  # trainer_spec {model_type: 77}
    with pytest.raises(InputError, match="odd.model: a damaged SentencePiece model"):
        tokenizer.sample("a", alpha=0.1, seed=1)


def test_weights_that_are_no_numbers(tmp_path: Path) -> None:
    trained = make_run(tmp_path / "run")
    tensors = {name: tensor.clone() for name, tensor in checkpoint.named_weights(trained.model).items()}
    next(iter(tensors.values())).view(-1)[0] = torch.nan
    safetensors.torch.save_file(tensors, tmp_path / "run" / "latest" / "model.safetensors")
    with pytest.raises(InputError, match="no finite numbers"):
        load_trained(tmp_path / "run", device="cpu", precision="float32")


def test_an_aligner_without_any_jump(tmp_path: Path) -> None:
    words = IndexedSentences(source.split() for source, _ in SENTENCES)
    file = tmp_path / "aligner.safetensors"
    save_aligner(learn_aligner(words, words, shares=(), iterations=(3, 1)), file)
    arrays = safetensors.numpy.load_file(file)
    arrays["0.forward.jump_J"][:] = 0
    safetensors.numpy.save_file(arrays, file, {"format": "nmt word aligner 3"})
    with pytest.raises(InputError, match="is damaged; make it anew"):
        load_aligner(file)


def test_a_layer_whose_shapes_ask_for_terabytes(tmp_path: Path) -> None:
    save_layer(AlignmentLayer(4, 5, width=6), tmp_path / "layer", model="me")
    tensors = safetensors.torch.load_file(tmp_path / "layer")
    tensors["source.narrow.weight"] = torch.zeros(0, 1 << 40)
    tensors["source.narrow.bias"] = torch.zeros(1 << 20)
    safetensors.torch.save_file(tensors, tmp_path / "layer", {"format": "nmt alignment layer 1", "model": "me"})
    with pytest.raises(InputError, match="is not an alignment layer, or damaged"):
        load_layer(tmp_path / "layer", model="me", remedy="make it")


@pytest.mark.parametrize("name", ["x" * 300, "../x", "a\0b", "a/b"])
def test_a_manifest_of_shards_that_can_be_no_files(tmp_path: Path, name: str) -> None:
    ShardManifest({}, {name: {"size": 1, "mtime_ns": 1}}).save(tmp_path)
    with pytest.raises(InputError, match="is damaged, or of another version"):
        ShardManifest.load(tmp_path)


def test_a_subword_model_that_writes_no_utf8(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    model = (tmp_path / "run" / "subwords.model").read_bytes()
    tokenizer = Tokenizer(model + b"\x0a\x0d\x0a\x04\xff\xfe\xfd\xfc\x15\x00\x00\x00\x00\x18\x01", name="odd.model")
    with pytest.raises(InputError, match="odd.model: a damaged SentencePiece model"):
        tokenizer.pieces([tokenizer.size - 1])
