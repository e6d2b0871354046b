"""The options of commands that translate files, and with a glossary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from nmt.cli.conflicts import Excludes, Needs, given_options
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting
from nmt.extras.documents.files.formats import FORMATS, OTHER_DOCUMENTS, OTHER_TEXTS, is_document

if TYPE_CHECKING:
    from nmt.cli.evaluate import EvaluateOptions
    from nmt.cli.translate import TranslateOptions
    from nmt.extras.documents.glossary import Glossary
    from nmt.translator.translator import Loader
    from nmt.workflows.evaluate import Scoring
else:
    EvaluateOptions = TranslateOptions = object


@dataclass(frozen=True)
class TranslateTerms(TranslateOptions):
    """Has `nmt translate` use the terms of a glossary."""

    glossary: Annotated[Path | None, typer.Option(metavar="FILE", rich_help_panel="Text")] = None
    """Terms and their translations: lines of source term, TAB, target term."""
    dictionary: Annotated[Path | None, typer.Option(metavar="FILE", rich_help_panel="Text")] = None
    """Bilingual dictionary (TSV, FreeDict's TEI or Ding) for words that are rare in the training corpus."""
    after: ClassVar[str] = "constraints"
    conflicts: ClassVar = (
        Excludes("glossary dictionary", "engine!=nmt/auto",
            "{option}: --engine {engine} has no constraints; use --engine nmt"),
        Excludes("glossary dictionary", "sample temperature top_k top_p seed consensus samples",
            "{option}: terms are searched for, not drawn; leave out {others}"),
        Excludes("dictionary", "glossary", "--dictionary: cannot be had together with {others}; leave one of them out"),
    )  # fmt: skip

    def load(self) -> Loader:
        refuse_overwriting(self.output, self.glossary, self.dictionary)
        if self.glossary is None:
            return super().load() if self.dictionary is None else partial(super().load(), dictionary=self.dictionary)
        from nmt.extras.documents.glossary import read_glossary

        return partial(super().load(), glossary=read_glossary(self.glossary))


@dataclass(frozen=True)
class TranslateFiles(TranslateOptions):
    """Has `nmt translate` translate files of other programs, whose names tell their formats."""

    report: Annotated[Path | None, typer.Option(metavar="FILE", rich_help_panel="Text")] = None
    """For a document such as report.docx: what was translated, copied and left, line by line."""
    after: ClassVar[str] = "context"
    more_help: ClassVar[dict[str, str]] = {
        "input_": " A document (.docx, .pptx, .odt, .html, .epub, .md, .po, .srt …) gives a document in its format."
    }

    def __post_init__(self) -> None:
        # nmt translate report.docx: the first argument is a document, not a model
        if self.model is not None and self.input_ is None and is_document(Path(self.model)):
            object.__setattr__(self, "input_", Path(self.model))
            object.__setattr__(self, "model", None)

    @property
    def changes(self) -> list[str]:
        if self._document is None:
            return super().changes
        return [*super().changes, "search.markup=true", "search.document=true"]

    @property
    def _document(self) -> Path | None:
        return self.input_ if self.input_ is not None and is_document(self.input_) else None

    def run(self, load: Loader) -> None:
        path = self._document
        if path is None:
            if self.report is not None:
                raise InputError(f"--report: is for documents ({', '.join(FORMATS)}); give one, or leave it out")
            if self.output is not None and is_document(self.output):
                raise InputError(f"--output {self.output}: only a document gives a document; name a file of text")
            ending = "" if self.input_ is None else self.input_.suffix.lower()
            if ending in OTHER_DOCUMENTS:
                raise InputError(f"--input {self.input_}: cannot be read; save it as {OTHER_DOCUMENTS[ending]}")
            if ending in OTHER_TEXTS and not given_options(self, "document markup format_"):
                advice = "convert it to .po or .xliff, or, if each line is a text, pass it by standard input"
                raise InputError(f"--input {self.input_}: has more than text in its lines; {advice}")
            super().run(load)
            return
        if given := given_options(self, "prefix constraints n_best format_ alignment context workers wait"):
            raise InputError(f"{given[0]}: is for text, line by line, and {path} is a document; leave it out")
        if self.output is None:
            raise InputError(f"--output: name the file for the translation of {path}, which is not for the terminal")
        from nmt.extras.documents.files.translate_file import translate_file

        translate_file(load, path, self.output, self.report)


@dataclass(frozen=True)
class EvaluateTerms(EvaluateOptions):
    """Has `nmt evaluate` translate with the terms of a glossary, and count them."""

    glossary: Annotated[Path | None, typer.Option(metavar="FILE", rich_help_panel="Scores")] = None
    """Translate with these terms and count them in translations: see nmt translate --glossary."""
    after: ClassVar[str] = "json"
    conflicts: ClassVar = (
        Excludes("alignment", "glossary", "--alignment scores links against --gold alone; leave out {others}"),
        Needs("hypothesis", "source", "--glossary finds its terms in the sources; give --source beside --hypothesis",
            where="glossary"),
    )  # fmt: skip

    @property
    def source_readers(self) -> list[str]:
        return [*super().source_readers, *["--glossary"] * (self.glossary is not None)]

    @cached_property
    def _terms(self) -> Glossary | None:
        if self.glossary is None:
            return None
        from nmt.extras.documents.glossary import read_glossary

        return read_glossary(self.glossary)

    def load(self) -> Loader:
        return super().load() if self._terms is None else partial(super().load(), glossary=self._terms)

    def scoring(self) -> Scoring:
        if self._terms is None:
            return super().scoring()
        from nmt.extras.documents.glossary import term_recall

        return replace(super().scoring(), term_recall=partial(term_recall, self._terms))
