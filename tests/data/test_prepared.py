"""The key by which a prepared folder is found again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from nmt.data.prepared import corpus_key, opened
from nmt.workflows.prepare import prepare
from tests.data.conftest import Pairs, Tokenizers, data_config, prepared, refusal, write_pairs


def test_the_key_is_that_of_releases_without_newer_options(tmp_path: Path, pairs: Pairs) -> None:
    path = Path(write_pairs(tmp_path / "train.tsv", pairs))
    config = data_config(train={"pairs": path})
    tree = json.loads(config.model_dump_json(exclude={"prepared": True, "workers": True, "subwords": {"model"}}))
    newer = {
        "": ("faulty", "temperature", "context", "old_domain", "imported"),
        "train": ("links", "languages", "unescape"), "filters": ("near_duplicates",),
        "subwords": ("min_frequency", "split_digits"),
    }  # fmt: skip
    for section, names in newer.items():
        for name in names:
            del (tree[section] if section else tree)[name]
    described = {"format": 1, "sentencepiece": sentencepiece.__version__, "seed": 3, "config": tree}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    digest.update(hashlib.sha256(path.read_bytes()).digest())
    assert corpus_key(config, 3) == digest.hexdigest() != corpus_key(config, 4)


@pytest.mark.parametrize("data", [
    {"context": 2}, {"faulty": "refuse"}, {"temperature": 2, "train": {"pairs": "train", "languages": ["de", "en"]}},
    {"subwords": {"size": 101}}, {"filters": {"max_length": 9}}, {"test": {"pairs": "other"}},
    {"valid": {"pairs": "other"}}, {"train": {"pairs": "train", "links": "links"}},
    {"train": {"pairs": "train", "unescape": True}},
])  # fmt: skip
def test_what_the_folder_depends_on_makes_another_key(
    data: dict[str, Any], tmp_path: Path, pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("train", "other"):
        write_pairs(Path(name), pairs[:3])
    Path("links").write_text("0-0\n\n\n")
    plain, config = ({"train": {"pairs": "train"}, **each} for each in ({"context": 0, "workers": 3}, data))
    key = corpus_key(data_config(**config), 1)
    assert corpus_key(data_config(train={"pairs": "train"}), 1) == corpus_key(data_config(**plain), 1) != key
    for name in {"other", "links"} & set(json.dumps(config).split('"')):  # the bytes of each file count
        Path(name).write_text("0-0\t1-1\n\n\n")
        assert corpus_key(data_config(**config), 1) != key


def test_the_bytes_of_a_subword_model_count_and_its_path_does_not(
    tmp_path: Path, pairs: Pairs, tokenizers: Tokenizers
) -> None:
    train = {"pairs": write_pairs(tmp_path / "train.tsv", pairs[:9])}
    models = {name: tmp_path / f"{name}.model" for name in ("unigram", "again", "bytes")}
    for name, path in models.items():
        path.write_bytes(tokenizers["bytes" if name == "bytes" else "unigram"].source.model)
    keys = {name: corpus_key(data_config(train=train, subwords={"model": path}), 1) for name, path in models.items()}
    assert keys["unigram"] == keys["again"] != keys["bytes"]


@pytest.mark.parametrize("joint", [True, False])
def test_another_corpus_is_cut_by_the_vocabulary_that_is_given(joint: bool, tmp_path: Path, pairs: Pairs) -> None:
    train = [{"pairs": write_pairs(tmp_path / name, part)} for name, part in (("all", pairs), ("some", pairs[:50]))]
    learned = prepared(tmp_path / "first", train=train[0], subwords={"size": 100, "joint": joint})
    given = data_config(train=train[1], subwords={"model": learned.folder, "joint": joint})
    made = prepare(given, run=tmp_path / "second", seed=1)
    assert made.tokenizers.fingerprint == learned.tokenizers.fingerprint
    assert made.tokenizers.joint == joint
    for index, (source, target) in enumerate(pairs[:50]):
        assert made.train.source(index).tolist() == learned.tokenizers.source.encode(source)
        assert made.train.target(index).tolist() == learned.tokenizers.target.encode(target)
    assert opened(given, run=tmp_path / "second").key == made.key
    (made.folder / "report.json").write_text("{")
    assert "damaged; make it again with: nmt prepare" in refusal(opened, given, run=tmp_path / "second")
    assert "no prepared corpus; run nmt prepare" in refusal(opened, given, run=tmp_path)
