"""Every reader of what others wrote, with a valid example."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import io
import json
import lzma
import os
import random
import struct
import zipfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch

from nmt import experiment as experiments
from nmt.alignment import formats
from nmt.alignment.error_rate import score_pair
from nmt.alignment.formats import Alignment, NpzWriter, jsonl_line
from nmt.alignment.link_files import TsvWriter, read_links
from nmt.config.structure import parse_document, validate
from nmt.core.lines import Line
from nmt.data.config import CorpusConfig, SubwordsConfig
from nmt.data.corpus import read_blocks, read_lines
from nmt.data.prepared import opened
from nmt.data.store import Ragged, Store, StoredCorpus, Text
from nmt.data.store_writer import StoreWriter
from nmt.data.tokenizer import Tokenizer, TokenizerPair
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.vocabulary import BOS, PAD
from nmt.experiment import Experiment
from nmt.extras.aligner.aligner import IndexedSentences, learn_aligner, load_aligner, save_aligner
from nmt.extras.aligner.layer import AlignmentLayer, load_layer, save_layer
from nmt.extras.cluster.manifest import ShardManifest
from nmt.extras.cluster.records import object_text, with_value
from nmt.extras.corpus.augment.steps import run_step
from nmt.extras.corpus.augment.text import read_translations
from nmt.extras.corpus.pair_filter.lexicon import learn_lexicon
from nmt.extras.corpus.pair_filter.model import INPUTS, PairClassifier
from nmt.extras.corpus.pair_filter.pair_filter import FOLDS, SIZE, PairFilter, load_pair_filter, save_pair_filter
from nmt.extras.corpus.pair_filter.wrong_pairs import KINDS
from nmt.extras.decoding.nearest_neighbors import Datastore, read_datastore
from nmt.extras.documents.glossary import find_variants, read_glossary
from nmt.extras.documents.number_formats import read_formats
from nmt.extras.exchange.export.engine import exported_about
from nmt.extras.finetuning.pretrained import read_vectors
from nmt.extras.service.app import create_app
from nmt.extras.service.messages import Limits
from nmt.extras.service.metrics import ServerMetrics
from nmt.models.build import build
from nmt.training import checkpoint, run_directory
from nmt.translator.find_run import NUMBER_FORMATS
from nmt.translator.loading import TrainedModel, load_trained
from nmt.translator.source_language import COUNTS, SourceLanguageCheck
from nmt.workflows.info import inspect
from nmt.workflows.info import text as info_text
from nmt.workflows.prepare import prepare
from tests.extras.service.fakes import Gated, batching
from tests.fuzz.judging import Opened, Reader, is_plain
from tests.fuzz.mutations import mutated, varint

SENTENCES = [
    ("Ein Hund schläft.", "A dog sleeps."),
    ("Die grüne Katze und der Hund", "The green cat and the dog"),
    ("eins zwei", "one two"),
]

CONFIG = """\
run: run
data:
  train: {source: train.de, target: train.en}
  subwords: {kind: unigram, size: 40}
model:
  embedding: {size: 6}
  encoder: {kind: rnn, size: 4}
  decoder: {kind: rnn, size: 5}
training:
  stopping: {updates: 2}
search: {beam: 1}
"""

FULL = """\
# every kind of value
run: &name runs/x
seed: 7
data:
  prepared: ${PREPARED:-there}
  train:
    - {source: a.de, target: a.en, weight: 0.5}
    - pairs: "b.tsv\\u00e9"
  valid: {source: c.de, target: c.en}
  subwords:
    kind: bpe
    size: 8_000
    character_coverage: 9.995e-1
  filters: {max_length: 100, max_ratio: 3.0}
model:
  encoder: {kind: transformer, layers: 2, size: 16, heads: 2}
  decoder:
    kind: transformer
    layers: 1
    size: 16
    heads: 2
  attention: {score: dot}
training: {}
search: {beam: 4, length_penalty: 1.0}
"""


def _of_file(path: Path, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """A reader of the bytes that stand in a file."""

    def read_bytes(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return read_bytes


def _given(name: str, seeds: Sequence[bytes], read: Callable[[Path], object]) -> Callable[[Path], Opened]:
    """Opens a reader of a file that has this name, from examples."""
    return lambda folder: Opened(seeds, _of_file(folder / name, read))


def _written(file: Path, read: Callable[[Path], object], *, shaped: bool = False) -> Opened:
    """A reader of a file that is there and valid; of tensors, if ``shaped``."""
    seed = file.read_bytes()
    return Opened([seed], _of_file(file, read), _shaped(seed) if shaped else None)


def _spend(items: Iterable[object]) -> int:
    return sum(1 for _ in items)


# ------------------------------------------------------------------------------------------------------------- corpora

TEXT = "".join(f"{source}\n" for source, _ in SENTENCES).encode()
PAIRS = "".join(f"{source}\t{target}\r\n" for source, target in SENTENCES).encode()
BIG = TEXT + (b"x" * 60_000 + b"\n") * 50 + b"\n" * 1000


_gz = partial(gzip.compress, mtime=0, compresslevel=1)


def _lines(pack: Callable[[bytes], bytes], folder: Path) -> Opened:
    seeds = [pack(TEXT), pack(b"\xef\xbb\xbf" + PAIRS), pack(BIG) if pack is not bytes else TEXT[:-1]]
    small = seeds if pack is bytes else seeds[:2] * 10 + seeds[2:]
    return Opened(small, _of_file(folder / "text", lambda path: _spend(read_lines(path))))


def _two_files(folder: Path) -> Opened:
    (folder / "target").write_bytes(TEXT)
    corpus = CorpusConfig(source=folder / "text", target=folder / "target")
    return Opened([TEXT, TEXT[:-1]], _of_file(folder / "text", lambda path: _spend(read_blocks(corpus))))


def _read_pairs(path: Path) -> int:
    return _spend(read_blocks(CorpusConfig(pairs=path)))


def _documents() -> list[bytes]:
    sides = "".join(f"<{side}>{SENTENCES[0][row]}</{side}>" for row, side in enumerate(("source", "target")))
    segments = "".join(f'<tuv xml:lang="{tag}"><seg>a<ph/>{tag}</seg></tuv>' for tag in ("de", "en"))
    seeds = [f"<tmx><body>{f'<tu>{segments}</tu>' * 3}</body></tmx>".encode()]
    seeds.append(f'<xliff srcLang="de"><unit><segment>{sides}</segment></unit></xliff>'.encode())
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, row in (("README", 0), ("x.de-en.de", 0), ("x.de-en.en", 1)):
            file.writestr(name, "".join(f"{pair[row]}\n" for pair in SENTENCES))
    seeds += [archive.getvalue(), "".join(f'"{one}"\t{other}\n' for one, other in SENTENCES).encode("utf-16")]
    seeds.append("".join(json.dumps({"source": one, "target": other}) + "\n" for one, other in SENTENCES).encode())
    return [*seeds, bz2.compress(seeds[-1])]


# ---------------------------------------------------------------------------------------------------------- alignments

ALIGNMENTS = [
    Alignment(("a", "b"), ("c", "d"), ((0, 0), (1, 1)), np.array([[0.75, 0.25], [0.0, 1.0]])),
    Alignment((), (), (), np.zeros((0, 0))),
    Alignment(("ä",), ("x", "y"), ((0, 0), (0, 1)), np.ones((2, 1)), source_spans=((0, 1),),
              target_spans=((0, 1), (2, 3)), sure=frozenset({(0, 0)})),
]  # fmt: skip


def _use(alignment: Alignment) -> None:
    """Uses an alignment in the same way as the commands."""
    jsonl_line(alignment)
    TsvWriter(io.StringIO()).write(alignment)
    formats.json_line(formats.json_tree(alignment.turned()))
    score_pair(alignment.links, alignment.as_gold())
    formats.gold_line(alignment.as_gold())


def _use_links(path: Path) -> int:
    count = 0
    for found in read_links(path):
        count += 1
        score_pair(found.links, found.gold)
        json.dumps(list(found.scores.values()), allow_nan=False)
        if found.alignment is not None:
            _use(found.alignment)
    return count


def _alignments(make: Callable[[io.StringIO], Any]) -> bytes:
    stream = io.StringIO()
    writer = make(stream)
    for each in ALIGNMENTS:
        writer.write(each)
    return stream.getvalue().encode()


def _read_pharaoh(path: Path) -> int:
    return _spend(map(formats.parse_pharaoh, formats.text_lines(path)))


GOLD = b"0-0 1p1\n\n3-4 4p3\n"
JSON_LINES = "".join(f"{jsonl_line(each)}\n" for each in ALIGNMENTS).encode()
VECTORS = [b"3 2\nHund 0.1 -2e-3\nund 1 2 \nHund 3\t4", b"und 5 6\n"]


def _read_vectors(path: Path) -> None:
    for _, vector_D in read_vectors(path, {b"Hund", b"und"}, 2):
        assert vector_D.shape == (2,)
        assert np.isfinite(vector_D).all()


def _read_glossary(path: Path) -> None:
    glossary = read_glossary(path)
    for term in glossary.terms:
        assert glossary.find(term.source)[0].term == term
        assert all(find_variants(target, [term]) != [None] for target in term.spellings)


GLOSSARY = "\ufeff# Tiere\nHund\tdog|hound\r\n\nRotes Kreuz\tRed Cross\nl’eau\tdon't | ßa\n".encode()


def archive_members(path: Path) -> dict[str, bytes]:
    """Writes the alignments into an archive; returns its members."""
    with NpzWriter(path) as writer:
        for each in ALIGNMENTS:
            writer.write(each)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_archive(path: Path | io.BytesIO, members: dict[str, bytes], kind: int) -> None:
    """Writes members that are packed in this way."""
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def _npz(folder: Path) -> Opened:
    seed = folder / "seed.npz"
    members = archive_members(seed)

    def repacked(draw: random.Random) -> bytes:
        """An archive that is whole, with an array that is not."""
        name = draw.choice(list(members))
        changed = members | {name: mutated([members[name]], draw)}
        packed = io.BytesIO()
        kinds = (zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
        write_archive(packed, changed, draw.choice(kinds))
        return packed.getvalue()

    return Opened([seed.read_bytes()], _of_file(folder / "links", _use_links), repacked)


# ------------------------------------------------------------------------------------------------------- configuration


def _read_config(path: Path) -> None:
    experiments.save(experiments.load(path), path.with_name("again.yaml"))


SETTINGS = [b"seed=3", b"model.encoder.layers=2", b"data.train=[{pairs: a}]", b"training.feed=teacher_forcing"]


def _read_override(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    validate(Experiment, parse_document(CONFIG, "config.yaml", [text]))


# ------------------------------------------------------------------------------------------------- subwords and store


def _pair(**more: Any) -> TokenizerPair:
    config = SubwordsConfig(**({"kind": "unigram", "size": 40} | more))
    return train_tokenizers([(source * 3, target * 3) for source, target in SENTENCES], config)


def _subwords(folder: Path) -> Opened:
    pairs = [_pair(), _pair(kind="bpe", size=45)]
    pairs += [_pair(kind=kind, size=size, normalization="identity") for kind, size in (("char", 40), ("word", 20))]
    pairs.append(_pair(kind="bpe", size=310, byte_fallback=True, normalization="identity"))
    seeds = [pair.source.model for pair in pairs]
    small = min(seeds, key=len)

    def read(path: Path) -> None:
        tokenizer = Tokenizer.load(path)
        for text in ("Ein Hund schläft.", "", " ﬀ ½ 字\u200b\u2581", "x" * 50):
            ids = tokenizer.encode(text)
            assert all(0 <= each < tokenizer.size for each in ids)
            assert "\n" not in tokenizer.detokenize(ids)
            tokenizer.encode_words(text)
            if tokenizer.samples:
                tokenizer.sample(text, alpha=0.2, seed=1)
            tokenizer.pieces(ids)

    def shaped(draw: random.Random) -> bytes:
        """A message that is whole, of a few fields."""
        pieces = ("a", "▁", "", "<s>", "\x00", "▁Hund")
        fields = [_field(1, _field(1, draw.choice(pieces).encode()) + _score(draw)) for _ in range(3)]
        size, trie = draw.choice((0, 4, 8, 1024, 1 << 31)), draw.randbytes(draw.choice((0, 8, 40, 1024, 4096)))
        extra = draw.choice((
            _field(2, _varint_field(3, draw.choice((0, 1, 2, 3, 4, 5, 77)))),
            _field(3, _field(2, struct.pack("<I", size) + trie)),
            _field(5, _field(2, draw.randbytes(16))),
        ))  # fmt: skip
        return draw.choice(seeds) + b"".join(fields[: draw.randrange(3)]) + extra

    return Opened([small, *seeds], _of_file(folder / "subwords.model", read), shaped)


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def _varint_field(number: int, value: int) -> bytes:
    return bytes([number << 3]) + varint(value)


def _score(draw: random.Random) -> bytes:
    score = struct.pack("<f", draw.choice((0.0, -1.0, float("nan"), float("-inf"), 1e38)))
    return b"\x15" + score + _varint_field(3, draw.randrange(9))


def make_store(folder: Path) -> None:
    """A store of six pairs of two corpora."""
    corpora, keeps = [StoredCorpus("a", 1.0), StoredCorpus("b", 0.5)], {"keep_text": True, "keep_links": True}
    tokens = Ragged.of([np.array([5, 6, 7]), np.array([8]), np.zeros(0, int)])
    texts = [Text("ä b", "c"), Text("", "d"), Text("e", "")]
    links = Ragged.of([np.array([0, 0, 1, 2]), np.zeros(0, int), np.zeros(0, int)])
    with StoreWriter(folder, corpora=corpora, vocabulary_sizes=(100, 100), **keeps) as writer:
        for corpus, lines in ((0, np.array([1, 2, 5])), (1, np.array([1, 2, 5]))):
            writer.append(corpus=corpus, lines=lines, sources=tokens, targets=tokens, texts=texts, links=links)
        writer.finish()


def _read_store(folder: Path) -> None:
    store = Store.open(folder)
    store.check(100, 100)
    for lengths in (store.source_lengths, store.target_lengths):
        assert len(lengths) == len(store)
        assert (lengths >= 0).all()
    assert store.linked_pairs <= len(store)
    assert all(np.isfinite(corpus.weight) and corpus.weight > 0 for corpus in store.corpora)
    for index in range(min(len(store), 10)):
        assert (store.source(index) < 100).all()
        assert (store.target(index) < 100).all()
        assert store.line(index).number >= 0
        if store.has_text:
            store.text(index)
        if store.has_links:
            store.links(index)
            if not store.has_text:
                store.words(index)


def _store(part: str, folder: Path) -> Opened:
    make_store(folder / "store")
    return _written(folder / "store" / part, lambda path: _read_store(path.parent))


def _prepared(part: str, folder: Path) -> Opened:
    for side, place in (("de", 0), ("en", 1)):
        (folder / f"train.{side}").write_text("".join(f"{pair[place]}\n" for pair in SENTENCES * 2), encoding="utf-8")
    text = CONFIG.replace("train.de", str(folder / "train.de")).replace("train.en", str(folder / "train.en"))
    data, run = validate(Experiment, parse_document(text, "config.yaml")).data, folder / "run"
    prepare(data, seed=1, run=run)
    return _written(run / "prepared" / part, lambda path: opened(data, run=run))


# -------------------------------------------------------------------------------------------------------------- models


def _safetensors(draw: random.Random, seed: bytes) -> bytes:
    """A file whose header is damaged, but as long as the file says."""
    (size,) = struct.unpack("<Q", seed[:8])
    header = mutated([seed[8 : 8 + size]], draw)
    return struct.pack("<Q", len(header)) + header + seed[8 + size :]


def _shaped(seed: bytes) -> Callable[[random.Random], bytes]:
    arrays = safetensors.numpy.load(seed)
    (size,) = struct.unpack("<Q", seed[:8])
    metadata = json.loads(seed[8 : 8 + size]).get("__metadata__")

    def make(draw: random.Random) -> bytes:
        """A file that is whole, with a tensor that is not."""
        if draw.random() < 0.5:
            return _safetensors(draw, seed)
        changed = dict(arrays)
        name = draw.choice(list(changed))
        array = changed[name]
        value = draw.choice((np.nan, np.inf, -1, 0, 1 << 62))
        hit = np.random.default_rng(draw.randrange(100)).random(array.shape) < 0.1
        with np.errstate(all="ignore"):
            changed[name] = draw.choice((
                array.astype(draw.choice((np.float64, np.float16, np.int64, np.uint8, np.bool_, np.complex64))),
                array.reshape(-1)[: draw.randrange(3)],
                array[None],
                array.reshape(-1),
                np.zeros((0, 1 << 40), array.dtype),
                np.zeros((), array.dtype),
                np.where(hit, np.array(value).astype(array.dtype), array),
                array[::-1].copy() if array.ndim else array,
            ))  # fmt: skip
        if draw.random() < 0.1:
            del changed[name]
        return safetensors.numpy.save(changed, metadata)

    return make


def make_run(run: Path) -> TrainedModel:
    """A run directory with a model that has learnt nothing."""
    run.mkdir()
    (run / "config.yaml").write_text(CONFIG, encoding="utf-8")
    experiment = experiments.load(run / "config.yaml")
    pair = _pair()
    pair.save(run)
    model = build(experiment.model, source_tokens=pair.source.size, target_tokens=pair.target.size, pad=PAD, bos=BOS)
    state = {"vocabulary": pair.fingerprint, "update": 2}
    saved = checkpoint.save(run, 2, model, {}, state)
    (saved / run_directory.CHECKSUMS).unlink()  # whoever damages a file on purpose makes its checksum anew,
    (saved / run_directory.STATE).write_text(json.dumps(state))  # or hides its format
    (run / "lengths.json").write_text('{"usual": 5, "longest": 9}\n')
    return load_trained(run, device="cpu", precision="float32")


def _run_file(part: str, folder: Path) -> Opened:
    make_run(folder / "run")
    read = partial(load_trained, device="cpu", precision="float32")
    return _written(folder / "run" / part, lambda path: read(folder / "run"), shaped=part.endswith(".safetensors"))


_METRICS = b"""\
{"kind": "train", "update": 1, "loss": 4.1, "perplexity": 60.3}
{"kind": "valid", "update": 2, "loss": 3.9, "perplexity": 49.4, "bleu": null}
"""
_TRAINED = b"""\
{"position": {"update": 2, "epoch": 0, "batch": 2, "tokens": 90, "seconds": 1.5}, "precision": "float32"}
"""
_MADE = b'{"format": "onnx", "checkpoint": "step-00000002"}'


def _info(part: str, seed: bytes, folder: Path) -> Opened:
    """A part of a run, as `nmt info` reads it; what it has where it is not made here."""
    run = folder / "run"
    make_run(run)
    if seed:
        (run / part).parent.mkdir(parents=True, exist_ok=True)
        (run / part).write_bytes(seed)
    return _written(run / part, lambda path: info_text(inspect(str(run))), shaped=not seed)


def _weights(folder: Path) -> Opened:
    trained = make_run(folder / "run")

    def read(path: Path) -> None:
        checkpoint.check_weights(path.parent, trained.model)
        checkpoint.load_weights(path.parent, trained.model)
        assert all(bool(each.isfinite().all()) for each in trained.model.parameters())

    return _written(folder / "run" / "latest" / run_directory.MODEL, read, shaped=True)


STATE = json.dumps({"vocabulary": "0a", "update": 7, "measured": {"bleu": 1.5}}, indent=1).encode()


def _read_lengths(path: Path) -> None:
    found = run_directory.read_lengths(path.parent)
    assert found is not None
    assert found.usual > 0
    assert found.longest > 0


def _source_counts(folder: Path) -> Opened:
    trained = make_run(folder / "run")
    counts = {"": [number % 7 for number in range(trained.tokenizers.source.size)]}
    (folder / "run" / COUNTS).write_text(f"{json.dumps(counts)}\n")
    return _written(folder / "run" / COUNTS, lambda path: SourceLanguageCheck.of(trained).warning(["Hund"] * 40))


def _number_formats(folder: Path) -> Opened:
    (folder / NUMBER_FORMATS).write_text('{".000": ",", ",0": "."}\n')
    return _written(folder / NUMBER_FORMATS, lambda path: read_formats(path.parent))


def _aligner(folder: Path) -> Opened:
    sources, targets = ([pair[side].split() for pair in SENTENCES] for side in (0, 1))
    file = folder / "aligner.safetensors"
    indexed = IndexedSentences(sources), IndexedSentences(targets)
    save_aligner(learn_aligner(*indexed, shares=(0.4,), iterations=(3, 1)), file)

    def read(path: Path) -> None:
        for matrices in load_aligner(path).matrices(sources, targets):
            assert all(np.isfinite(each).all() for each in matrices)

    return _written(file, read, shaped=True)


def _datastore(folder: Path) -> Opened:
    file = folder / "neighbors.safetensors"
    one, tokens = torch.ones(3, 4).half(), torch.tensor([1, 2, 3])
    kernel = torch.tensor([4.0, 0.1, 0.6])
    safetensors.torch.save_file(vars(Datastore(one[:2], tokens[:2], one.clone(), tokens.int(), kernel)), file)
    return _written(file, read_datastore, shaped=True)


def _layer(folder: Path) -> Opened:
    file = folder / "layer.safetensors"
    save_layer(AlignmentLayer(4, 5, width=6), file, model="me")
    return _written(file, lambda path: load_layer(path, model="me", remedy="make it"), shaped=True)


def write_pair_filter(file: Path, pairs: Sequence[tuple[str, str]], config: SubwordsConfig) -> None:
    """Writes a pair filter that has learnt nothing."""
    tokenizer = train_tokenizers(pairs, config).source
    encoded = list(zip(*(tokenizer.encode_arrays(side) for side in zip(*pairs, strict=True)), strict=True))
    lexicons = tuple(learn_lexicon(encoded, tokenizer.size) for _ in range(FOLDS))
    models = [PairClassifier(torch.zeros(INPUTS), torch.ones(INPUTS), len(KINDS), SIZE) for _ in range(2)]
    classifiers = tuple(model.requires_grad_(False) for model in models)
    save_pair_filter(PairFilter(tokenizer, lexicons, classifiers, np.zeros(2, np.float32)), file)


def _pair_filter(folder: Path) -> Opened:
    write_pair_filter(folder / "pair.filter", SENTENCES, SubwordsConfig(size=40))

    def read(path: Path) -> None:
        found = load_pair_filter(path)
        assert len(found.scores(*zip(*SENTENCES, strict=True))) == len(SENTENCES)
        found.threshold(0.01)

    return _written(folder / "pair.filter", read, shaped=True)


def _augment_record(folder: Path) -> Opened:
    def run(folder: Path) -> None:
        run_step(folder, "a", {"seed": 1, "data": {"train": ["b"]}}, [folder / "augment.json"], lambda: None)

    run(folder)
    return _written(folder / "augment.json", lambda path: run(path.parent))


TRANSLATIONS = b'{"source": "a b", "translations": [{"text": "c", "score": -1.5, "log_prob": -3.0, "tokens": ["c"]}]}\n'
ABOUT = b'{"format": "ctranslate2", "checkpoint": "step-2", "vocabulary": "0a"}\n'


def _read_translations(path: Path) -> None:
    assert all(isinstance(row.line + row.text, str) for row in read_translations(path.parent))


def _manifest(folder: Path) -> Opened:
    made_with = {"model": "0a", "search": {"beam": 4, "none": None}}
    ShardManifest(made_with, {"a.txt": {"size": 4, "mtime_ns": 5}}).save(folder)

    def read(path: Path) -> None:
        found = ShardManifest.load(folder)
        assert found is not None
        found.has_any(folder)
        found.check(made_with, folder)
        found.remaining([], folder)

    return _written(folder / ".manifest.json", read)


RECORDS = [b'{"id": 1, "text": "Ein Hund", "more": [1.5, null]}\n', b'{"text": ""}']


def _read_records(path: Path) -> None:
    for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").split("\n"), 1):
        object_text(Line(number, line), "text", "translation")
        if line.strip():
            json.loads(with_value(line, "translation", "x"))


# ---------------------------------------------------------------------------------------------------------------- HTTP

JSON_HEAD = b"POST /translate\ncontent-type: application/json\ncontent-length: 40\n\n"
OTHER_HEAD = b"POST /translate\nContent-Type: application/json; charset=utf-8\ncontent-encoding: identity\n\n"
FORM_HEAD = b"POST /translate\nContent-Type: application/x-www-form-urlencoded\n\n"
REQUESTS = [
    JSON_HEAD + b'{"text": ["a b", ""], "n_best": 2, "beam": 3, "alignment": false}',
    OTHER_HEAD + b'{"text": "\xc3\xa4 b"}',
    FORM_HEAD + b"q=a&source=de&target=en&format=html",
    b"GET /health\nhost: localhost:80\nauthorization: Bearer a\n\n",
    b"GET /metrics?x=1\naccept: text/plain\n\n",
    b"HEAD /page.js\n\n",
    b"GET /openapi.json\n\n",
]  # fmt: skip


def _http(folder: Path) -> Opened:
    # kept open until the process ends
    keep = batching(Gated())
    batcher = keep.__enter__()
    app = create_app(batcher, Limits(timeout_s=5.0), ServerMetrics())
    loop = asyncio.new_event_loop()

    def read(data: bytes, keep: object = keep) -> None:
        status, body = loop.run_until_complete(_answered(app, data))
        assert 200 <= status < 500, f"status {status}: {body[:200]!r}"
        if status >= 400 and not data.startswith(b"HEAD"):
            message = json.loads(body)["error"]
            assert is_plain(message), message

    return Opened(REQUESTS, read)


async def _answered(app: Any, data: bytes) -> tuple[int, bytes]:
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, target = first.partition(b" ")
    path, _, query = target.partition(b"?")
    parts = [body[: len(body) // 2], body[len(body) // 2 :]]
    headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "root_path": "", "scheme": "http"}
    scope |= {"method": method.decode("latin-1").upper(), "path": path.decode("utf-8", "replace"), "raw_path": path}
    scope |= {"query_string": query, "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
    sent: list[Any] = []

    async def receive() -> Any:
        if parts:
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
        await asyncio.Event().wait()
        return None

    await app(scope, receive, AsyncMock(side_effect=sent.append))
    starts = [each["status"] for each in sent if each["type"] == "http.response.start"]
    assert len(starts) == 1, f"{len(starts)} answers"
    return starts[0], b"".join(each.get("body", b"") for each in sent)


READERS = (
    Reader("corpus lines", partial(_lines, bytes)),
    Reader("corpus gz", partial(_lines, _gz)),
    Reader("corpus xz", partial(_lines, partial(lzma.compress, preset=0))),
    Reader("corpus of two files", _two_files),
    Reader("corpus of pairs", _given("text", [PAIRS, _gz(PAIRS)], _read_pairs)),
    Reader("corpus of a document", _given("text", _documents(), _read_pairs)),
    Reader("pharaoh", _given("links", [b"0-0 1-1\n\n3-4 4-3\n", b"0-0"], _read_pharaoh)),
    Reader("gold", _given("links", [GOLD], partial(formats.read_gold, lengths=[(2, 2), (0, 0), (5, 5)]))),
    Reader("word vectors", _given("vectors", VECTORS, _read_vectors)),
    Reader("glossary", _given("terms", [GLOSSARY, b"a\tb\na\tb\n"], _read_glossary)),
    Reader("links", _given("links", [GOLD], _use_links)),
    Reader("links tsv", _given("links", [_alignments(TsvWriter)], _use_links)),
    Reader("links jsonl", _given("links", [JSON_LINES], _use_links)),
    Reader("links npz", _npz),
    Reader("config", _given("config.yaml", [CONFIG.encode(), FULL.encode()], _read_config), cost=3),
    Reader("--set", _given("setting", SETTINGS, _read_override), cost=3),
    Reader("subword model", _subwords, cost=2),
    Reader("store.json", partial(_store, "store.json")),
    Reader("store offsets", partial(_store, "source.offsets.bin")),
    Reader("store tokens", partial(_store, "target.bin")),
    Reader("store text", partial(_store, "source.text.bin")),
    Reader("prepared state", partial(_prepared, "state.json"), cost=4),
    Reader("prepared report", partial(_prepared, "report.json"), cost=4),
    Reader("info weights", partial(_info, "latest/model.safetensors", b""), cost=8),
    Reader("info metrics", partial(_info, "metrics.jsonl", _METRICS), cost=8),
    Reader("info state.json", partial(_info, "latest/state.json", _TRAINED), cost=8),
    Reader("info export", partial(_info, "exported/onnx/nmt.json", _MADE), cost=8),
    Reader("weights", _weights),
    Reader("state.json", _given(run_directory.STATE, [STATE], lambda path: run_directory.read_state(path.parent))),
    Reader("lengths.json", _given(run_directory.LENGTHS, [b'{"usual": 5, "longest": 9}\n'], _read_lengths)),
    Reader("source-counts.json", _source_counts),
    Reader("number-formats.json", _number_formats),
    Reader("run config", partial(_run_file, "config.yaml"), cost=10),
    Reader("run weights", partial(_run_file, "latest/model.safetensors"), cost=10),
    Reader("run subwords", partial(_run_file, "subwords.model"), cost=10),
    Reader("aligner", _aligner, cost=5),
    Reader("alignment layer", _layer, cost=2),
    Reader("datastore", _datastore, cost=2),
    Reader("pair filter", _pair_filter, cost=3),
    Reader("export manifest", _given("nmt.json", [ABOUT], lambda path: exported_about(path.parent, remedy="make it"))),
    Reader("shards manifest", _manifest),
    Reader("augment record", _augment_record),
    Reader("augment translations", _given("00000.txt", [TRANSLATIONS], _read_translations)),
    Reader("records jsonl", _given("records", RECORDS, _read_records)),
    Reader("HTTP", _http, cost=3),
)

assert os.name != "nt", "a case runs in a fork"
