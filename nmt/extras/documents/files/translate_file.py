"""Translation of files of other programs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting
from nmt.data.context import DocumentContext
from nmt.extras.documents.files.document import MARKUP, Block, DocumentFile
from nmt.extras.documents.files.formats import read
from nmt.extras.documents.markup import tags_and_placeholders
from nmt.translator.confidence import cells
from nmt.translator.translation import Translation
from nmt.translator.translator import Loader, Translator
from nmt.workflows.output_files import output_file, text_file
from nmt.workflows.translate import LIMIT_BYTES

Fate: TypeAlias = Literal["translated", "copied", "left"]
"""What has become of a block: a translation; itself, because nothing in it can be translated; itself, because the
translation had not the same tags and placeholders, or no words."""

WINDOW_BLOCKS = 1000
"""Number of blocks that are translated together."""


@dataclass(frozen=True)
class TranslatedBlock:
    """A block and its translation."""

    block: Block
    text: str
    fate: Fate
    confidence: tuple[str, ...] = ()
    """The confidence and the reasons to doubt it, if they are estimated."""


def translate_file(load: Loader, path: Path, output: Path, report: Path | None) -> None:
    """Translates a file to a file of the same format. ``report`` is a file that gets a line for each block: its fate,
    its place, its text, its translation and, with an estimator, its confidence and reasons, between tabs. Raises
    InputError for a file that cannot be read or written."""
    if output.suffix.lower() != path.suffix.lower():
        raise InputError(f"--output {output}: has another format than {path}; let its name end in {path.suffix}")
    refuse_overwriting(output, path)
    refuse_overwriting(report, path, option="--report")
    if report is not None and report.absolute() == output.absolute():
        raise InputError(f"--report {report}: is the file of the translation, too; name another one")
    document = read(path)
    translator = load()
    texts = (MARKUP.sub(" ", block.text) for block in document.blocks if len(block.text) <= LIMIT_BYTES)
    translator.trained.warn_of_language(texts)
    translated = translate_blocks(translator, document)
    with output_file(output) as stream:
        stream.write(document.write([each.text for each in translated]))
    if report is not None:
        with text_file(report) as lines:
            for each in translated:
                line = (each.fate, each.block.place, each.block.text, each.text, *each.confidence)
                lines.write("\t".join(" ".join(part.split()) for part in line) + "\n")
    counts = Counter(each.fate for each in translated)
    log.info(", ".join(f"{counts[fate]:,} {fate}" for fate in ("translated", "copied", "left")) + f": {output}")


def translate_blocks(translator: Translator, document: DocumentFile) -> list[TranslatedBlock]:
    """Translates the blocks of a document; those with equal texts, and with equal sentences before them that the model
    reads, only once."""
    texts = source_texts(document, has_context=translator.trained.experiment.data.context > 0)
    keys = [(str(text), tuple(getattr(text, "previous", ()))) for text in texts]
    by_key = dict(zip(keys, texts, strict=True))
    unique, sources = list(by_key), list(by_key.values())
    translations, cut = dict[tuple[str, tuple[str, ...]], Translation](), 0
    with log.progress(total=len(unique), description="translate", unit="block") as bar:
        for first in range(0, len(unique), WINDOW_BLOCKS):
            window = slice(first, first + WINDOW_BLOCKS)
            found = translator.translate(sources[window])
            translations |= zip(unique[window], found, strict=True)
            bar.update(len(found))
            cut += sum(each.cut > 0 for each in found)
    if cut:
        log.warning(f"{cut:,} texts have more subwords than search.max_source_tokens; their ends were not translated")
    blocks = [(block, translations[key]) for block, key in zip(document.blocks, keys, strict=True)]
    shows = translator.estimator is not None
    return [replace(judged(block, one.text), confidence=cells(one) if shows else ()) for block, one in blocks]


def source_texts(document: DocumentFile, *, has_context: bool) -> list[str]:
    """Returns the texts of the blocks, blank for one that is longer than a line may be; for a model with context each
    knows the blocks before it, unless it is apart."""
    sentences = DocumentContext().sentences
    texts = [(each.text if len(each.text) <= LIMIT_BYTES else "", each.is_apart) for each in document.blocks]
    return [sentences([text])[0] if has_context and not is_apart else text for text, is_apart in texts]


def judged(block: Block, translation: str) -> TranslatedBlock:
    """Tells what has become of a block; it keeps its own text if that was too long or the translation has lost a
    tag or all words."""
    if translation == block.text:
        return TranslatedBlock(block, translation, "copied")
    own, words = (MARKUP.sub("", text) for text in (block.text, translation))
    is_lost = any(map(str.isalpha, own)) and not any(map(str.isalnum, words))
    if len(block.text) > LIMIT_BYTES or is_lost or _markup(translation) != _markup(block.text):
        return TranslatedBlock(block, block.text, "left")
    return TranslatedBlock(block, translation, "translated")


def _markup(text: str) -> tuple[Counter[str], list[str]]:
    """Counts the tags and placeholders of a text, and lists in their order those that stand for values."""
    items = tags_and_placeholders(text)
    return Counter(items), [item for item in items if re.fullmatch(r"%[^($]*[A-Za-z]|<x\d+\./>", item)]
