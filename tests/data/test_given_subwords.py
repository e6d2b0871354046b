"""Subwords that are there already, instead of learned ones: `data.subwords.model`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.config.structure import dump, parse_document, validate
from nmt.core.errors import InputError
from nmt.data.config import DataConfig, SubwordsConfig
from nmt.data.tokenizer import load_tokenizers
from nmt.workflows.prepare import prepare
from tests.data.conftest import Pairs, Tokenizers


def corpus(folder: Path, pairs: Pairs) -> dict[str, str]:
    path = folder / f"{len(pairs)}.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return {"pairs": str(path)}


def config_of(folder: Path, pairs: Pairs, **subwords: Any) -> DataConfig:
    tree = {"train": corpus(folder, pairs), "subwords": {name: str(each) for name, each in subwords.items()}}
    return DataConfig.model_validate_json(json.dumps(tree))


@pytest.mark.parametrize("joint", [True, False])
def test_another_corpus_is_cut_by_the_vocabulary_that_is_given(joint: bool, tmp_path: Path, pairs: Pairs) -> None:
    learned = prepare(
        DataConfig.model_validate_json(
            json.dumps({"train": corpus(tmp_path, pairs), "subwords": {"size": 100, "joint": joint}})
        ),
        run=tmp_path / "first",
        seed=1,
    )
    given = DataConfig.model_validate_json(
        json.dumps({"train": corpus(tmp_path, pairs[:50]), "subwords": {"model": str(learned.folder), "joint": joint}})
    )
    made = prepare(given, run=tmp_path / "second", seed=1)
    assert made.tokenizers.fingerprint == learned.tokenizers.fingerprint
    assert made.tokenizers.joint == joint
    for index, (source, target) in enumerate(pairs[:50]):
        assert made.train.source(index).tolist() == learned.tokenizers.source.encode(source)
        assert made.train.target(index).tolist() == learned.tokenizers.target.encode(target)


def test_it_is_the_bytes_that_count(tmp_path: Path, pairs: Pairs, tokenizers: Tokenizers) -> None:
    (tmp_path / "a.model").write_bytes(tokenizers["unigram"].source.model)
    (tmp_path / "b.model").write_bytes(tokenizers["unigram"].source.model)
    first = prepare(config_of(tmp_path, pairs, model=tmp_path / "a.model"), run=tmp_path / "run", seed=1)
    again = prepare(config_of(tmp_path, pairs, model=tmp_path / "b.model"), run=tmp_path / "run", seed=1)
    assert (first.reused, again.reused, again.key) == (False, True, first.key)
    (tmp_path / "b.model").write_bytes(tokenizers["bytes"].source.model)
    other = prepare(config_of(tmp_path, pairs, model=tmp_path / "b.model"), run=tmp_path / "run", seed=1)
    assert not other.reused
    assert other.key != first.key
    assert other.tokenizers.source == tokenizers["bytes"].source


def test_what_cannot_be_taken_is_named(tmp_path: Path, tokenizers: Tokenizers) -> None:
    def refused(path: Path, **options: Any) -> str:
        with pytest.raises(InputError) as error:
            load_tokenizers(path, SubwordsConfig(model=path, **options))
        assert "\n" not in str(error.value)
        return str(error.value)

    two, word = tmp_path / "two", tmp_path / "word.model"
    two.mkdir()
    tokenizers["bpe"].save(two)
    word.write_bytes(tokenizers["word"].source.model)
    (tmp_path / "broken.model").write_bytes(b"broken")
    assert refused(tmp_path / "gone") == f"data.subwords.model: {tmp_path}/gone: no such file"
    assert refused(tmp_path) == f"data.subwords.model: {tmp_path}/subwords.model: no such file"
    assert "broken.model: not a SentencePiece model, or damaged" in refused(tmp_path / "broken.model")
    assert refused(two) == f"data.subwords.model: {two}: has a vocabulary for each side; set data.subwords.joint: false"
    assert refused(word, joint=False) == (
        f"data.subwords.model: {word}: has one vocabulary; set data.subwords.joint: true"
    )
    assert refused(word, sampling=0.1) == (
        f"data.subwords.sampling: {word} has one segmentation of a text only; leave sampling out"
    )
    assert load_tokenizers(two, SubwordsConfig(model=two, joint=False, sampling=0.1)).source.samples


@pytest.mark.parametrize("option", ["kind: bpe", "size: 100", "normalization: nfkc", "byte_fallback: true"])
def test_no_other_key_would_do_anything(option: str) -> None:
    with pytest.raises(InputError) as error:
        validate(SubwordsConfig, parse_document(f"model: runs/x\n{option}", "c.yaml"))
    assert str(error.value) == f"c.yaml:1: {option.split(':')[0]} is that of the model that is given; leave it out"


def test_what_a_run_writes_of_it_can_be_read() -> None:
    given = SubwordsConfig(model=Path("runs/x"), sampling=0.1)
    assert validate(SubwordsConfig, parse_document(dump(given), "config.yaml")) == given
