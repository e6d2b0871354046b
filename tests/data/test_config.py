from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from nmt.config.structure import dump, parse_document, validate
from nmt.core.errors import InputError
from nmt.data.config import DataConfig, SubwordsConfig


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


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"train": {"source": "a"}}, "target is missing"),
        ({"train": {"target": "a"}}, "source is missing"),
        ({"train": {}}, "needs source and target, or pairs; both are missing"),
        ({"train": {"source": "a", "target": "b", "pairs": "c"}}, "either pairs or source and target"),
        ({"train": []}, "name a corpus"),
        ({"train": {"pairs": "a", "weight": 0}}, "greater than 0"),
        ({"train": {"pairs": "a"}, "valid": {"pairs": "a", "weight": 2}}, "Extra inputs"),
        ({"train": {"pairs": "a"}, "subwords": {"kind": "word", "sampling": 0.1}}, "needs kind unigram or bpe"),
        ({"train": {"pairs": "a"}, "subwords": {"kind": "word", "byte_fallback": True}}, "byte_fallback needs kind"),
        ({"train": {"pairs": "a"}, "subwords": {"min_frequency": 2}}, "min_frequency needs kind word: unigram spells"),
        ({"train": {"pairs": "a"}, "subwords": {"size": 100, "byte_fallback": True}}, "bytes alone take 256"),
        ({"train": {"pairs": "a"}, "filters": {"max_ratio": 0.5}}, "greater than or equal to 1"),
    ],
)
def test_errors_say_what_is_wrong(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(**data)


def test_errors_of_a_corpus_are_not_mixed_with_those_of_a_list() -> None:
    with pytest.raises(ValidationError) as error:
        config(train={"source": "a", "targt": "b"})
    assert error.value.error_count() == 1


def test_torch_is_not_imported() -> None:
    code = "import sys, nmt.data.batching, nmt.workflows.prepare; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("option", ["kind: bpe", "size: 100", "normalization: nfkc", "byte_fallback: true"])
def test_keys_beside_a_subword_model_are_refused(option: str) -> None:
    with pytest.raises(InputError) as error:
        validate(SubwordsConfig, parse_document(f"model: runs/x\n{option}", "c.yaml"))
    assert str(error.value) == f"c.yaml:1: {option.split(':')[0]} is that of the model that is given; leave it out"


def test_a_subword_model_that_a_run_writes_can_be_read() -> None:
    given = SubwordsConfig(model=Path("runs/x"), sampling=0.1)
    assert validate(SubwordsConfig, parse_document(dump(given), "config.yaml")) == given
