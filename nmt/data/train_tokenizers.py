"""Learns subword models from text."""

from __future__ import annotations

import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sentencepiece

from nmt.core.errors import InputError
from nmt.data.config import SubwordsConfig
from nmt.data.tokenizer import MARK, Tokenizer, TokenizerPair, clean
from nmt.data.vocabulary import BOS, EOS, PAD, UNK

# the learned model depends on the number of threads, through the order of floating-point sums; it is fixed so that all
# machines learn the same model
_TRAINING_THREADS = 8
# SentencePiece's own default; the memory of unigram is proportional to the square of this length
_MAX_SENTENCE_BYTES = 4192

_PATH = 240
"""Length of the path of rules, by which the bytes of a model are the same in any folder."""

NOTABLE_CHANGES = 0.005
"""Share of the target lines from which on the changes of `changed_by_normalization` are worth a word."""


def train_tokenizers(pairs: Sequence[tuple[str, str]], config: SubwordsConfig) -> TokenizerPair:
    """Learns the vocabulary or vocabularies of sentence pairs. The same pairs and config give the same bytes.

    Sentences of more than 4192 bytes are not learned from.

    Raises:
        InputError: The size is larger than the number of subwords of the text, or smaller than its number of
            characters, or the text is empty.
    """
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    if config.joint:
        model, rare = _train(sources + targets, config, "both sides")
        joint = Tokenizer(model)
        return TokenizerPair(joint, joint, (rare, rare))
    (source, source_rare), (target, target_rare) = (
        _train(texts, config, f"the {side} side") for texts, side in ((sources, "source"), (targets, "target"))
    )
    return TokenizerPair(Tokenizer(source), Tokenizer(target), (source_rare, target_rare))


def changed_by_normalization(lines: Sequence[str], rule: str) -> tuple[float, str]:
    """Computes the share of the lines in which the normalization replaces or removes characters, and names the most
    frequent of these: `，` becomes `,`. A model can only write what it leaves. White space does not count, nor do
    canonically equivalent characters, such as é for e with a combining accent."""
    normalizer = _normalizer(rule)
    characters = [{*unicodedata.normalize("NFC", clean(line))} - {MARK, " ", "\ufffd"} for line in lines]
    counts = Counter(character for line in characters for character in line)
    changes = {one: new for one in counts if (new := normalizer.normalize(one).strip(MARK)) != one}
    share = sum(not line.isdisjoint(changes) for line in characters) / max(len(lines), 1)
    most = max(changes, key=lambda one: (counts[one], one), default="")
    shown = most if most.isprintable() else f"U+{ord(most):04X}"
    return share, f"{shown} becomes {changes[most] or 'a space'}" if most else ""


@contextmanager
def _rules() -> Iterator[str]:
    """Yields the path of a file with the rules of NFC: sequences of characters, and the one that they compose. Byte
    order marks are removed."""
    composed = {
        sequence: one
        for one in map(chr, range(0x30000))
        if unicodedata.is_normalized("NFC", one) and len(unicodedata.normalize("NFD", one)) > 1
        for sequence in (unicodedata.normalize("NFD", one), _halves(one))
    }
    rows = [" ".join(f"{ord(char):X}" for char in sequence) + f"\t{ord(one):X}" for sequence, one in composed.items()]
    with TemporaryDirectory() as folder:
        path = Path(folder, "nfc".ljust(_PATH - len(folder) - 1, "_"))
        path.write_text("\n".join([*rows, "FEFF\t", ""]), encoding="utf-8")
        yield str(path)


def _halves(one: str) -> str:
    """Returns the one or two characters that a character is composed of, the first of which may be composed, too."""
    codes = unicodedata.decomposition(one).split()
    return "".join(chr(int(code, 16)) for code in codes) or unicodedata.normalize("NFD", one)


def _normalizer(name: str) -> sentencepiece.SentencePieceNormalizer:
    if name != "nfc":
        return sentencepiece.SentencePieceNormalizer(rule_name=name)
    with _rules() as path:
        return sentencepiece.SentencePieceNormalizer(rule_tsv=path)


def _train(texts: Sequence[str], config: SubwordsConfig, what: str) -> tuple[bytes, int]:
    """Learns a model from `texts`, which `what` names in errors. Returns the serialised model and the number of rare
    words."""
    cleaned = (clean(text).replace("\0", " ") for text in texts)
    usable = [text for text in cleaned if len(text.encode()) <= _MAX_SENTENCE_BYTES]
    if not any(text.strip(f" {MARK}") for text in usable):
        raise InputError(f"data.subwords: {what} hold no sentence of up to {_MAX_SENTENCE_BYTES} bytes to learn from")
    size, rare = config.size, 0
    if config.min_frequency > 1:
        normalizer = _normalizer(config.normalization)
        counts = Counter(word for text in usable for word in normalizer.normalize(text).split(MARK) if word)
        rare = sum(count < config.min_frequency for count in counts.values())
        if rare == len(counts):
            raise InputError(f"data.subwords.min_frequency: no word of {what} is that frequent; lower it")
        size = min(size, len(counts) - rare + EOS + 1)  # the vocabulary has the most frequent words
    model = io.BytesIO()
    options: dict[str, Any] = {
        "model_type": config.kind,
        "vocab_size": size,
        # the numbers of characters and words of a text are given, so for these kinds the size is only a limit
        "hard_vocab_limit": config.kind in ("unigram", "bpe"),
        "character_coverage": config.character_coverage,
        "byte_fallback": config.byte_fallback,
        "split_digits": config.split_digits,
        "max_sentence_length": _MAX_SENTENCE_BYTES,
        "num_threads": _TRAINING_THREADS,
        "minloglevel": 2,
    }
    with _rules() if config.normalization == "nfc" else nullcontext("") as path:
        options |= {"normalization_rule_tsv": path} if path else {"normalization_rule_name": config.normalization}
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(usable), model_writer=model,
                pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS, **options,
            )  # fmt: skip
        except RuntimeError as error:
            raise _explain(str(error), config, what) from None
    learned = model.getvalue()
    # the model names the path, which differs from time to time
    return (learned.replace(path.encode(), b"_" * len(path.encode())) if path else learned), rare


def _explain(message: str, config: SubwordsConfig, what: str) -> InputError:
    """Explains an error of SentencePiece in terms of the config."""
    key = "data.subwords.size"
    if most := re.search(r"too high (?:(?!too high)[^<])*+<= (\d+)", message):
        return InputError(f"{key}: {config.size} is more than the text of {what} has; set it to {most[1]} or less")
    if least := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return InputError(
            f"{key}: {config.size} is less than the characters of {what} take; set it to {least[1]} or more, "
            "or lower data.subwords.character_coverage"
        )
    return InputError(f"data.subwords: SentencePiece cannot learn from {what}: {' '.join(message.split())}")
