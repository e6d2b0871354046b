"""A prepared corpus: a folder with subword models, memory-mapped stores of train and valid, and a report.

    <prepared>/subwords.model           or subwords.source.model and subwords.target.model
               train/  valid/           see nmt.data.store
               report.json              see nmt.data.report
               state.json               the key of what all this was made from

``nmt.workflows.prepare`` makes it.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import sentencepiece

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import MAX_JSON_BYTES, content_hash, read_json, read_whole
from nmt.data.config import DataConfig
from nmt.data.report import Report
from nmt.data.store import Store
from nmt.data.tokenizer import TokenizerPair, load_tokenizers

# to be raised when the same input and config give other files than before
_FORMAT = 1


@dataclass(frozen=True)
class PreparedData:
    """A prepared corpus, open.

    Attributes:
        folder: Path of the folder.
        tokenizers: The tokenizers of source and target.
        train, valid: The pairs; valid is None if the config names no such corpus. `valid.text` always exists,
            `train.text` if subwords are sampled.
        report: Counts of what was read, dropped and kept.
        reused: True if the folder existed already.
        key: Hash of the corpora's bytes, the seed, and every setting that affects the folder.
    """

    folder: Path
    tokenizers: TokenizerPair
    train: Store
    valid: Store | None
    report: Report
    reused: bool
    key: str


def opened(config: DataConfig, *, run: Path) -> PreparedData:
    """Opens the prepared folder without checking the corpora that it was made from.

    Raises:
        InputError: The folder is missing or damaged.
    """
    folder = config.prepared or run / "prepared"
    try:
        return open_folder(folder, read_json(folder / "state.json")["key"], reused=True)
    except FileNotFoundError:
        remedy = f"run nmt prepare {run / 'config.yaml'}, or, with a model from elsewhere, name pairs or fine-tune it"
        raise InputError(f"{folder}: no prepared corpus; {remedy}") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{folder}: damaged; make it again with: nmt prepare {run / 'config.yaml'} --force") from None


def find(folder: Path, key: str) -> PreparedData | None:
    """Opens the folder if it has this key and is complete."""
    try:
        if read_json(folder / "state.json")["key"] != key:
            log.info(f"{folder}: input or config has changed since it was made; preparing again")
            return None
        return open_folder(folder, key, reused=True)
    except FileNotFoundError:
        return None
    except (InputError, OSError, ValueError, KeyError, TypeError):
        log.info(f"{folder}: damaged; preparing again")
        return None


def open_folder(folder: Path, key: str, *, reused: bool) -> PreparedData:
    report = Report.model_validate_json(read_whole(folder / "report.json", most=MAX_JSON_BYTES))
    tokenizers = TokenizerPair.load(folder)
    train, valid = Store.open(folder / "train"), None if report.valid is None else Store.open(folder / "valid")
    for store in (train, valid):
        if store is not None:
            store.check(tokenizers.source.size, tokenizers.target.size)
    return PreparedData(folder, tokenizers, train, valid, report, reused, key)


def corpus_key(config: DataConfig, seed: int) -> str:
    """Hashes everything that the prepared folder depends on: format, config, seed, and the bytes of every file. The
    path of a subword model does not count."""
    tree = config.model_dump(
        mode="json",
        exclude={"prepared": True, "workers": True, "old_domain": True, "imported": True, "subwords": {"model": True}},
    )
    # at their defaults the key is that of releases without them
    defaults = [
        (tree, "faulty", "drop"), (tree, "temperature", 1), (tree, "context", 0),
        (tree["subwords"], "min_frequency", 1), (tree["subwords"], "split_digits", False),
        (tree["filters"], "near_duplicates", False),
    ]  # fmt: skip
    for section in ("train", "valid", "test"):
        for corpus in filter(None, tree[section] if isinstance(tree[section], list) else [tree[section]]):
            defaults += [(corpus, "links", None), (corpus, "languages", None), (corpus, "unescape", False)]
    for node, key, default in defaults:
        if node.get(key) == default:
            node.pop(key, None)
    made_by = {"format": _FORMAT, "sentencepiece": sentencepiece.__version__, "seed": seed, "config": tree}
    digest = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode())
    if config.subwords.model is not None:
        given = load_tokenizers(config.subwords.model, config.subwords)
        digest.update(given.with_controls(config.control_pieces).fingerprint.encode())
    corpora = [*config.train_corpora, *config.valid_corpora, *config.test_corpora]
    links = [corpus.links for corpus in config.train_corpora if corpus.links is not None]
    for path in [*(path for corpus in corpora for path in corpus.files), *links]:
        digest.update(_content_hash(path))
    return digest.hexdigest()


def _content_hash(path: Path) -> bytes:
    with suppress(OSError):
        if path.is_file():
            return content_hash(path)
    from nmt.data.corpus import open_bytes

    open_bytes(path).close()  # raises the same errors as reading the text
    return content_hash(path)
