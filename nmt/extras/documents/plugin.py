"""Tags and placeholders, and the terms of a glossary."""

from __future__ import annotations

from nmt.plugins import Plugin

PLUGIN = Plugin(
    options={
        "evaluate": ["nmt.extras.documents.options:EvaluateTerms"],
        "translate": ["nmt.extras.documents.options:TranslateTerms", "nmt.extras.documents.options:TranslateFiles"],
    },
    parts={
        "dictionary": "nmt.extras.documents.dictionary_terms:with_dictionary",
        "glossary": "nmt.extras.documents.terminology:with_glossary",
        "number_formats": "nmt.extras.documents.number_formats:write_formats",
        "numbers": "nmt.extras.documents.terminology:keep_numbers",
        "markup": "nmt.extras.documents.transfer:transfer_markup",
    },
)
