"""The way of texts and files through the queue, which is the same for every protocol."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from nmt.extras.documents.files.document import escaped
from nmt.extras.documents.files.formats import parse
from nmt.extras.documents.files.translate_file import judged, source_texts
from nmt.extras.documents.glossary import Glossary
from nmt.extras.service.batcher import Answer, Batcher, Refused, RequestOptions
from nmt.extras.service.engine import TranslatorEngine
from nmt.extras.service.messages import Limits

T = TypeVar("T")

MOST_KEPT = 32
"""Maximum number of translated files that are kept for clients to fetch them, and of glossaries."""


@dataclass
class Service:
    """The translator of all requests, and what clients leave at the server. The methods raise Refused if there are no
    answers, and InputError for options that the model does not support."""

    batcher: Batcher
    limits: Limits
    files: dict[str, asyncio.Task[bytes]] = field(default_factory=dict)
    """Translated files, and those in progress, by names that cannot be guessed."""
    glossaries: dict[str, tuple[dict[str, Any], Glossary]] = field(default_factory=dict)
    """Glossaries with their descriptions, by their identifiers."""
    characters: int = 0
    """Number of characters of DeepL's clients."""
    _reader: Executor = field(default_factory=lambda: ThreadPoolExecutor(1))

    @property
    def engine(self) -> TranslatorEngine:
        """The engine. Raises Refused if no model is loaded yet."""
        if self.batcher.engine is None:
            raise Refused(503, "the server is loading its model; try again", retry_after_s=2)
        return self.batcher.engine

    async def answers(self, texts: Sequence[str], options: RequestOptions) -> list[Answer]:
        """Waits for the answers to texts; if it is cancelled, the rest of the job is dropped."""
        self.limits.check_texts(texts)
        self.engine.check(options)
        subwords = await asyncio.to_thread(self.engine.subwords, texts)
        self.limits.check_lengths(subwords, "subwords")
        job = self.batcher.submit(texts, options, subwords)
        try:
            return await asyncio.wrap_future(job.future)
        finally:
            self.batcher.cancel(job)

    async def parts(self, text: str, options: RequestOptions) -> AsyncIterator[str | Answer]:
        """Yields what each beginning of the translation of a text adds to those before it, and then the answer."""
        loop, beginnings = asyncio.get_running_loop(), asyncio.Queue[str | None]()

        def on_text(beginning: str) -> None:
            loop.call_soon_threadsafe(beginnings.put_nowait, beginning)

        waiting = asyncio.create_task(self.answers([text], replace(options, on_text=on_text)))
        waiting.add_done_callback(lambda _: beginnings.put_nowait(None))
        sent = 0
        try:
            while (beginning := await beginnings.get()) is not None:
                if part := beginning[sent:]:
                    yield part
                    sent = len(beginning)
            (answer,) = await waiting
            yield answer
        finally:
            waiting.cancel()

    async def translate(self, texts: Sequence[str], options: RequestOptions, tags: str | None) -> list[list[str]]:
        """Translates running text, which may have ``tags`` of html or xml. Returns the translations of each text, best
        first, and of HTML the best one."""
        if tags == "html":  # in an encoding that its tags cannot change
            page, contents = Path("text.html"), [text.encode("utf-16") for text in texts]
            return [[(await self.translate_file(page, each, options)).decode("utf-16")] for each in contents]
        answers = await self.answers(texts, replace(options, document=True, markup=tags == "xml"))
        ranked = [[each["text"] for each in answer.tree["translations"]] for answer in answers]
        if tags is None:
            return ranked
        return [[escaped(each, text) for each in of_text] for text, of_text in zip(texts, ranked, strict=True)]

    async def translate_file(self, name: Path, content: bytes, options: RequestOptions) -> bytes:
        """Translates a file of a format of ``nmt.extras.documents.files``. Files are read one after another, because a
        small archive may take a gigabyte of memory."""
        loop = asyncio.get_running_loop()
        document = await loop.run_in_executor(self._reader, parse, name, content)
        options = replace(options, document=True, markup=True, context=self.engine.context > 0)
        texts, answers = source_texts(document, has_context=options.context), list[Answer]()
        for begin in range(0, len(texts), self.limits.sentences):
            answers += await self.answers(texts[begin : begin + self.limits.sentences], options)
        pairs = zip(document.blocks, answers, strict=True)
        translations = [judged(block, answer.tree["translations"][0]["text"]).text for block, answer in pairs]
        return await loop.run_in_executor(self._reader, document.write, translations)

    def start_file(self, name: Path, content: bytes, options: RequestOptions) -> str:
        """Begins to translate a file, which is kept while there are not many newer ones. Returns its name."""
        kept = secrets.token_urlsafe(16) + name.suffix.lower()
        translation = asyncio.wait_for(self.translate_file(name, content, options), self.limits.timeout_s)
        self.files[kept] = task = asyncio.create_task(translation)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may ask for it
        for oldest in list(self.files)[:-MOST_KEPT]:
            self.files.pop(oldest).cancel()
        return kept


def kept(things: Mapping[str, T], name: str) -> T:
    """Returns a file or a glossary that a client has left. Raises Refused if it is not there."""
    if name not in things:
        raise Refused(404, "this file or glossary is not here any more; send it again")
    return things[name]
