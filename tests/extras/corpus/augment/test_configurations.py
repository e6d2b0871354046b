"""Configurations that are made of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.config.structure import parse_document, validate
from nmt.core.errors import InputError
from nmt.experiment import Experiment, load
from nmt.extras.corpus.augment.configurations import Synthetic, augmented, exchanged, mixture, write
from tests.workflows.runs import CONFIG, write_corpus


def experiment(text: str) -> Experiment:
    return validate(Experiment, parse_document(text, "config.yaml"))


def test_all_that_has_a_direction_is_exchanged() -> None:
    text = CONFIG.replace(
        "{source: train.de, target: train.en}", "[{source: a.de, target: a.en, weight: 2, links: l}, {pairs: b.tsv}]"
    )
    text = text.replace("embedding: {size: 16}", "embedding: {size: 16, pretrained: {source: de.vec, target: en.vec}}")
    text = text.replace("training:\n", "training:\n  start_from: old\n  guided_attention: {weight: 0.1}\n")
    config = experiment(text)
    made = exchanged(config, Path("reverse"), lambda path: path.with_suffix(".turned"))
    first, second = made.data.train_corpora
    assert (first.files, first.weight, first.links) == ((Path("a.en"), Path("a.de")), 2.0, None)
    assert second.files == (Path("b.turned"),)
    assert made.data.valid_corpora[0].files == (Path("valid.en"), Path("valid.de"))
    vectors = made.model.embedding.pretrained
    assert vectors is not None
    assert vectors.files == [Path("en.vec"), Path("de.vec")]
    assert (made.run, made.training.start_from, made.training.guided_attention) == ("reverse", None, None)
    to = config.search.model_copy(update={"to": "en"})
    assert exchanged(config.model_copy(update={"search": to}), Path("reverse"), lambda path: path).search.to is None
    twice = exchanged(made, Path("run"), lambda path: path.with_suffix(".tsv"))
    assert twice.data.train_corpora[1] == config.data.train_corpora[1]
    assert twice.model == config.model

    given = experiment(
        text.replace("subwords: {kind: bpe, size: 60, joint: true}", "subwords: {model: a, joint: false}")
    )
    with pytest.raises(InputError, match="--reverse"):
        exchanged(given, Path("reverse"), lambda path: path)


@pytest.mark.parametrize(
    ("share", "pairs", "factor"),
    [(0.5, 600, 10.0), (0.75, 600, 30.0), (0.5, 30, 1.0), (0.0, 600, 1.0), (0.9, 10**6, 1000)],
)
def test_real_pairs_are_a_share_of_an_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, pairs: int, factor: float
) -> None:
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path)  # 60 pairs
    config = experiment(CONFIG)
    copies = Synthetic("copies", Path("b.de"), Path("b.en"), 10)
    corpora = [Synthetic("a", Path("a.de"), Path("a.en"), pairs - 10), copies]
    found = mixture(config, corpora, share)
    assert found.real == pytest.approx(factor)
    made = augmented(config, Path("new"), corpora, found)
    assert not made.data.filters.identical
    write(made, tmp_path / "new.yaml", ["a comment"], {"target: a.en": "a note", "no such line": "nowhere"})
    assert load(tmp_path / "new.yaml") == made
    text = (tmp_path / "new.yaml").read_text()
    assert text.startswith("# a comment\nrun: new\n")
    assert "    target: a.en  # a note\n" in text
    real, *others = made.data.train_corpora
    assert real.weight == pytest.approx(factor)
    assert [each.weight for each in others] == [1.0, 1.0]
    epoch = real.weight * 60 + pairs
    if 1 < factor < 1000:
        assert real.weight * 60 / epoch == pytest.approx(share)
    before, after = (each.training.stopping.updates or 0 for each in (config, made))
    # real pairs are seen as often
    assert after * real.weight / epoch == pytest.approx(before / 60, abs=real.weight / epoch)
