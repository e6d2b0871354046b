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
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from nmt import experiment as experiments
from nmt.alignment.formats import parse_gold, parse_json, read_npz
from nmt.alignment.link_files import TsvWriter, read_links
from nmt.config.structure import validate
from nmt.config.yaml_source import parse_document
from nmt.core.errors import LONGEST, InputError
from nmt.core.files import read_json, read_whole
from nmt.data.corpus import read_lines
from nmt.data.store import Store
from nmt.data.tokenizer import Tokenizer
from nmt.extras.aligner.layer import AlignmentLayer, load_layer, save_layer
from nmt.extras.cluster.manifest import ShardManifest
from nmt.extras.exchange.export.engine import exported_about
from nmt.training import checkpoint
from nmt.training.run_directory import read_lengths, read_state
from nmt.translator.loading import load_trained
from tests.fuzz.readers import ALIGNMENTS, CONFIG, archive_members, make_run, make_store, write_archive


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


def _table(row: str) -> str:
    stream = io.StringIO()
    TsvWriter(stream)
    return stream.getvalue() + row + "\t" * (10 - row.count("\t")) + "\n"


LENGTHS = ("[]", '{"usual": 1e400, "longest": 1}', '{"usual": -1, "longest": 9}', '{"usual": 0, "longest": 0}')


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        *(("lengths.json", text, "damaged") for text in LENGTHS),
        ("links.tsv", _table("999999999"), "pair 999999999"),
        ("links.tsv", _table("9" * 5000), "not a number from 0"),
        ("links.tsv", _table("1\t0\t0\ta\tb\tnan"), "score 'nan' is not a number"),
        ("c.yaml", "#" * (2 << 20), "has more than 1 MiB"),
    ],
    ids=range(8),
)
def test_numbers_that_are_none_and_a_file_that_is_too_long(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    read: dict[str, Callable[[], object]] = {
        "lengths.json": lambda: read_lengths(tmp_path),
        "links.tsv": lambda: list(read_links(tmp_path / name)),
        "c.yaml": lambda: experiments.load(tmp_path / name),
    }
    with pytest.raises(InputError, match=message):
        read[name]()


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


def _claiming(shape: bytes) -> Callable[[bytes], bytes]:
    packed = io.BytesIO()
    np.lib.format.write_array_header_1_0(packed, {"descr": "<f4", "fortran_order": False, "shape": (1,)})
    return lambda weights: packed.getvalue().replace(b"(1,)", shape)


def _pickled(weights: bytes) -> bytes:
    packed = io.BytesIO()
    np.lib.format.write_array(packed, np.array([print], dtype=object), allow_pickle=True)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *(("weights.npy", _claiming(shape)) for shape in (b"(1000000000000,)", b"(-1,)", b"((((1,)")),
        ("weights.npy", _pickled),
        ("weights.npy", lambda weights: weights[:-4] + struct.pack("<f", float("nan"))),
        ("source_words.npy", lambda words: words.replace(b"a\n", b"\xff\n")),
    ],
)
def test_an_archive_that_lies(tmp_path: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "x.npz"
    members = archive_members(path)
    write_archive(path, members, zipfile.ZIP_DEFLATED)
    assert len(list(read_npz(path))) == len(ALIGNMENTS)
    for changes, kind, message in (
        ({name: change(members[name])}, zipfile.ZIP_DEFLATED, "not an archive that nmt align"),
        ({}, zipfile.ZIP_LZMA, "another way than by deflate"),
    ):
        write_archive(path, members | changes, kind)
        with pytest.raises(InputError, match=message):
            list(read_npz(path))


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
    (tmp_path / "huge").write_bytes(small[:12] + huge + struct.pack("<I", zlib.crc32(huge)) + small[24:])
    with pytest.raises(InputError, match="more than 256 MiB of memory to unpack"):
        list(read_lines(tmp_path / "huge"))
    (tmp_path / "cut").write_bytes(small[:-8])
    with pytest.raises(InputError, match="damaged or cut short"):
        list(read_lines(tmp_path / "cut"))


def test_a_bomb_of_gzip_is_read_in_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(64 << 20)))
    with pytest.raises(InputError, match="a line of more than 16 MiB"):
        list(read_lines(tmp_path / "bomb.gz"))


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
    make_store(tmp_path / "store")
    tree = json.loads((tmp_path / "store" / "store.json").read_text())
    change(tree)
    (tmp_path / "store" / "store.json").write_text(json.dumps(tree))
    with pytest.raises(InputError, match="damaged; delete it"):
        Store.open(tmp_path / "store")


@pytest.mark.parametrize(
    ("file", "place", "value"),
    [
        ("target.bin", 0, 250),
        ("source.offsets.bin", 8, 200),
        ("corpus.bin", 0, 9),
        ("links.offsets.bin", 8, 1),
        ("source.text.bin", 0, 255),
    ],
)
def test_a_store_with_numbers_or_text_out_of_place(tmp_path: Path, file: str, place: int, value: int) -> None:
    make_store(tmp_path / "store")
    Store.open(tmp_path / "store").check(100, 100)
    data = bytearray((tmp_path / "store" / file).read_bytes())
    data[place] = value
    (tmp_path / "store" / file).write_bytes(data)
    store = Store.open(tmp_path / "store")
    with pytest.raises(InputError, match="damaged; delete it"):
        store.text(0) if file == "source.text.bin" else store.check(100, 100)


@pytest.mark.parametrize(
    ("field", "use"),
    [
        # trainer_spec {model_type: 77}
        (b"\x12\x02\x18\x4d", lambda tokenizer: tokenizer.sample("a", alpha=0.1, seed=1)),
        # a piece that is not UTF-8
        (
            b"\x0a\x0d\x0a\x04\xff\xfe\xfd\xfc\x15\x00\x00\x00\x00\x18\x01",
            lambda tokenizer: tokenizer.pieces([tokenizer.size - 1]),
        ),
    ],
)
def test_a_subword_model_of_an_unknown_kind_or_with_no_text(
    tmp_path: Path, field: bytes, use: Callable[[Tokenizer], object]
) -> None:
    make_run(tmp_path / "run")
    tokenizer = Tokenizer((tmp_path / "run" / "subwords.model").read_bytes() + field, name="odd.model")
    with pytest.raises(InputError, match="odd.model: a damaged SentencePiece model"):
        use(tokenizer)


def test_weights_that_are_no_numbers(tmp_path: Path) -> None:
    trained = make_run(tmp_path / "run")
    tensors = {name: tensor.clone() for name, tensor in checkpoint.named_weights(trained.model).items()}
    next(iter(tensors.values())).view(-1)[0] = torch.nan
    safetensors.torch.save_file(tensors, tmp_path / "run" / "latest" / "model.safetensors")
    with pytest.raises(InputError, match="no finite numbers"):
        load_trained(tmp_path / "run", device="cpu", precision="float32")


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
