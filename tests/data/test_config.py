from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nmt.config.structure import dump, parse_document, validate
from nmt.data.config import DataConfig, SubwordsConfig
from tests.data.conftest import refusal


def config(**data: Any) -> DataConfig:
    return DataConfig.model_validate_json(json.dumps(data))


def test_paths_of_corpora_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET", "value")
    assert config(train={"pairs": "a/${SET}/b"}).train_corpora[0].files == (Path("a/value/b"),)


def test_one_corpus_and_a_list_are_alike() -> None:
    corpus = {"source": "a", "target": "b", "weight": 2}
    assert config(train=corpus).train_corpora == config(train=[corpus]).train_corpora
    assert config(train=corpus).test_corpora == ()
    assert len(config(train=corpus, test={"pairs": "c"}).test_corpora) == 1


DE_EN, PAIRS = {"pairs": "a", "languages": ["de", "en"]}, {"pairs": "a"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"train": {"source": "a"}}, "train: a corpus needs source and target, or pairs; target is missing"),
        ({"train": {"target": "a"}}, "train: a corpus needs source and target, or pairs; source is missing"),
        ({"train": {}}, "train: a corpus needs source and target, or pairs; both are missing"),
        (
            {"train": {"source": "a", "target": "b", "pairs": "c"}},
            "train: a corpus has either pairs or source and target",
        ),
        ({"train": {"pairs": "c", "target": "b"}}, "train: a corpus has either pairs or source and target"),
        ({"train": {"source": "a", "targt": "b"}}, "train.targt: unknown key; did you mean 'target'"),
        ({"train": []}, "train is an empty list; name a corpus"),
        ({"train": {**PAIRS, "weight": 0}}, "train.weight: expected more than 0"),
        ({"valid": {"pairs": "a", "weight": 2}}, "valid.weight: unknown key"),
        ({"subwords": {"kind": "word", "sampling": 0.1}}, "subwords: sampling needs kind unigram or bpe"),
        ({"subwords": {"kind": "word", "byte_fallback": True}}, "subwords: byte_fallback needs kind"),
        ({"subwords": {"kind": "char", "split_digits": True}}, "subwords: split_digits needs kind unigram or bpe"),
        ({"subwords": {"min_frequency": 2}}, "subwords: min_frequency needs kind word: unigram spells"),
        ({"subwords": {"size": 100, "byte_fallback": True}}, "subwords: size 100 is too small .* bytes alone take 256"),
        *(
            ({"subwords": {"model": "runs/x", key: value}}, f"subwords: {key} is that of the model .*; leave it out")
            for key, value in {"kind": "bpe", "size": 100, "normalization": "nfkc", "byte_fallback": True}.items()
        ),
        ({"filters": {"max_ratio": 0.5}}, "filters.max_ratio: expected at least 1"),
        ({"train": [DE_EN, {"pairs": "b"}]}, "b has no languages, as others have"),
        ({"train": DE_EN, "valid": {"pairs": "b"}}, "b has no languages, as others have"),
        ({"train": {"pairs": "b"}, "test": [DE_EN]}, "b has no languages, as others have"),
        ({"train": {**PAIRS, "languages": ["de", "de"]}}, "train: languages: source and target are both de"),
        ({"train": {**PAIRS, "languages": ["de", "<2en>"]}}, "train.languages.1: "),
        ({"train": {**PAIRS, "languages": ["de", ""]}}, "train.languages.1: "),
        ({"train": {**PAIRS, "languages": ["de"]}}, "train.languages.1: missing"),
        ({"train": DE_EN, "valid": {"pairs": "b", "languages": ["en", "de"]}}, "b is into de, and none of train is"),
        ({"train": DE_EN, "test": [{"pairs": "b", "languages": ["de", "cs"]}]}, "b is into cs, and none of train is"),
        ({"temperature": 5}, "temperature weighs languages, and no corpus has languages"),
        ({"train": DE_EN, "temperature": 0.005}, "temperature: "),  # a power beyond what a float can hold
    ],
)
def test_errors_are_one_line_with_their_place(data: dict[str, Any], message: str) -> None:
    text = json.dumps({"train": PAIRS, **data})
    assert re.match(f"c.yaml:1: {message}", refusal(validate, DataConfig, parse_document(text, "c.yaml")))


def test_language_names_may_have_a_region_or_a_script_and_no_is_norwegian() -> None:
    text = "train: [{pairs: a, languages: [no, pt-BR]}, {pairs: b, languages: [zh_Hans, sr_Latn-RS]}]\nvalid: []"
    config = validate(DataConfig, parse_document(text, "c.yaml"))
    assert config.target_languages == ("pt-BR", "sr_Latn-RS")
    assert config.train_corpora[0].language_names == ("no", "pt-BR")
    assert config.valid_corpora == ()


def test_a_subword_model_that_a_run_writes_can_be_read() -> None:
    given = SubwordsConfig(model=Path("runs/x"), sampling=0.1)
    assert validate(SubwordsConfig, parse_document(dump(given), "config.yaml")) == given
