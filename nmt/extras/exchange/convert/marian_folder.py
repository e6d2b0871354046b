"""Reading and checking of the files of a MarianMT folder: nothing in them is trusted, and nothing is guessed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.core.errors import InputError
from nmt.core.files import MAX_JSON_BYTES, read_whole, reading
from nmt.data.imported import ImportedVocabulary
from nmt.data.tokenizer import Tokenizer, TokenizerPair
from nmt.extras.exchange.convert import marian

MOST = 1 << 20
"""Maximum size of any dimension."""


@dataclass(frozen=True)
class Settings:
    """A JSON object of settings, and the file that it comes from."""

    path: Path
    tree: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Settings:
        """Reads a file. Raises InputError."""
        return cls(path, _json_object(path))

    def whole(self, key: str, *, least: int = 1, most: int = MOST, default: int | None = None) -> int:
        """Returns a whole number; it is required if there is no default."""
        value = self.tree.get(key)
        value = default if value is None else value
        if type(value) is not int or not least <= value <= most:
            raise self.fault(key, f"expected a whole number from {least} to {most}, found {shown(value)}")
        return value

    def number(self, key: str, *, most: float, default: float = 0.0) -> float:
        """Returns a number from 0 to ``most``; it may be missing."""
        value = self.tree.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise self.fault(key, f"expected a number from 0 to {most}, found {shown(value)}")
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """Returns True or False."""
        value = self.tree.get(key, default)
        if not isinstance(value, bool):
            raise self.fault(key, f"expected true or false, found {shown(value)}")
        return value

    def text(self, key: str, *, default: str | None = None) -> str:
        """Returns text; it is required if there is no default. A token may be an object with its text as content."""
        value = self.tree.get(key, default)
        value = value.get("content") if isinstance(value, dict) else value
        if not isinstance(value, str):
            raise self.fault(key, f"expected text, found {shown(value)}")
        return value

    def only(self, key: str, accepted: Any) -> None:
        """Raises InputError for another value, which cannot be converted; it may be missing."""
        value = self.tree.get(key)
        if value is not None and (type(value) is not type(accepted) or value != accepted):
            raise self.fault(key, f"{shown(value)} cannot be converted, only {json.dumps(accepted)} can")

    def fault(self, key: str, what: str) -> InputError:
        """Creates an error that names the file and the key."""
        return InputError(f"{self.path}: {key}: {what}")


def shown(value: object) -> str:
    """Formats a JSON value, short enough for a message."""
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _json_object(path: Path) -> dict[str, Any]:
    def of_pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        counts = Counter(key for key, _ in pairs)
        if twice := [key for key, count in counts.items() if count > 1]:
            raise ValueError(f"{shown(twice[0])} stands there twice")
        return dict(pairs)

    try:
        tree = json.loads(_read(path, most=MAX_JSON_BYTES), object_pairs_hook=of_pairs)
        if not isinstance(tree, dict):
            raise ValueError("no JSON object")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not valid: {error}") from None
    return tree


@dataclass(frozen=True)
class MarianFolder:
    """The settings and tokenizers of a folder.

    Attributes:
        name: Name of the model.
        config: `config.json`.
        generation: `generation_config.json`, or `config.json`, in which older models have these keys.
        tokenizers: The tokenizers of the `.spm` files.
        vocabularies: The vocabularies of encoder and decoder.
        is_shared: True if encoder and decoder have one table of embeddings.
    """

    path: Path
    name: str
    config: Settings
    generation: Settings
    tokenizers: TokenizerPair
    vocabularies: Mapping[str, ImportedVocabulary]
    is_shared: bool


def read_folder(path: Path, *, name: str = "") -> MarianFolder:
    """Reads and checks all files except the weights; ``name`` is the name of the model. Raises InputError, which names
    the file and the key."""
    if not path.is_dir():
        raise InputError(f"{path}: is not a folder; name one with {marian.CONFIG}, {marian.SOURCE} and so on")
    config = Settings.read(path / marian.CONFIG)
    if config.tree.get("model_type") != "marian":
        raise config.fault("model_type", f"is {shown(config.tree.get('model_type'))}; only marian can be converted")
    generation = Settings.read(path / marian.GENERATION) if (path / marian.GENERATION).exists() else config
    tokenizer_path = path / marian.TOKENIZER
    tokenizer = Settings.read(tokenizer_path) if tokenizer_path.exists() else Settings(tokenizer_path, {})
    tokenizer.only("sp_model_kwargs", {})
    is_shared = config.flag("share_encoder_decoder_embeddings", default=True)
    separate = tokenizer.flag("separate_vocabs", default=False)
    if separate and is_shared:
        fault = f"is true, and {tokenizer.path} has separate_vocabs; one of them is wrong"
        raise config.fault("share_encoder_decoder_embeddings", fault)
    source_size = config.whole("vocab_size", least=5, most=1 << 24)
    target_size = config.whole("decoder_vocab_size", least=5, most=1 << 24, default=source_size)
    if is_shared and target_size != source_size:
        raise config.fault("decoder_vocab_size", f"is {target_size}, but vocab_size of the same table is {source_size}")
    target_path = path / (marian.TARGET_VOCABULARY if separate else marian.VOCABULARY)
    sides = ("encoder", path / marian.VOCABULARY, source_size), ("decoder", target_path, target_size)
    vocabularies = {side: _vocabulary(file, size, config, tokenizer) for side, file, size in sides}
    source, target = (
        Tokenizer(vocabulary.joined_to(_read(path / name, most=256 << 20)), name=str(path / name))
        for vocabulary, name in zip(vocabularies.values(), (marian.SOURCE, marian.TARGET), strict=True)
    )
    pair = TokenizerPair(source, source if source == target else target)
    return MarianFolder(path, name, config, generation, pair, vocabularies, is_shared)


def _vocabulary(path: Path, size: int, config: Settings, tokenizer: Settings) -> ImportedVocabulary:
    ids = _json_object(path)
    pieces: list[str | None] = [None] * len(ids)
    for piece, number in ids.items():
        if type(number) is not int or not 0 <= number < len(ids):
            raise InputError(f"{path}: {shown(piece)}: expected an id from 0 to {len(ids) - 1}, found {shown(number)}")
        if pieces[number] is not None:
            raise InputError(f"{path}: {shown(piece)} and {shown(pieces[number])} have the same id, {number}")
        if not piece or (not piece.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in piece)):
            raise InputError(f"{path}: {shown(piece)} is not text")
        pieces[number] = piece
    if len(ids) != size:
        raise InputError(f"{path}: has {len(ids)} entries, and {config.path} says {size}")
    special = {}
    for name in ("pad", "unk", "eos"):
        token = tokenizer.text(f"{name}_token", default={"pad": "<pad>", "unk": "<unk>", "eos": "</s>"}[name])
        if token not in ids:
            raise InputError(f"{path}: has no {shown(token)}, which is the {name}_token")
        if name != "unk" and (configured := config.whole(f"{name}_token_id", least=0)) != ids[token]:
            raise config.fault(f"{name}_token_id", f"is {configured}, and {path} gives {shown(token)} {ids[token]}")
        special[name] = ids[token]
    if len(set(special.values())) < 3:
        raise InputError(f"{path}: padding, unknown text and end-of-sentence need ids of their own")
    start = config.whole("decoder_start_token_id", least=0, most=size - 1)
    if any(piece.startswith("<2") and piece.endswith(">") for piece in ids):
        raise InputError(f"{path}: has pieces such as <2en>, which mark languages here; it cannot be converted")
    return ImportedVocabulary(tuple(map(str, pieces)), **special, start=start)


def _read(path: Path, *, most: int) -> bytes:
    with reading(path):
        return read_whole(path, most=most)
