"""Several languages in one model, by the command line and from Python."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nmt as library
from nmt import InputError
from nmt import experiment as experiments
from nmt.alignment.directions import join
from nmt.alignment.formats import pharaoh_line
from nmt.alignment.words import word_indices
from nmt.data.prepared import opened
from nmt.data.tokenizer import TokenizerPair
from nmt.extras.aligner.align import learn_word_aligner
from nmt.extras.aligner.layer import AlignmentLayer, weights
from nmt.extras.aligner.model_aligner import ModelAligner, _linked_pairs, _training_text
from nmt.extras.decoding.wait_k import waiting
from nmt.extras.documents.glossary import Glossary, Term
from nmt.extras.documents.terminology import with_glossary
from nmt.extras.exchange.export.export_model import _sample
from nmt.extras.service.batcher import RequestOptions
from nmt.extras.service.engine import TranslatorEngine
from nmt.extras.trust import calibrate
from nmt.translator.both_directions import BothDirections
from nmt.translator.translator import Translator
from nmt.workflows.train import train
from tests.workflows.runs import CONFIG, Command, lines_of, train_in

CORPORA = """\
  train:
    - {source: train.de, target: train.en, languages: [de, en]}
    - {source: train.en, target: train.de, languages: [en, de]}
  valid:
    - {source: valid.de, target: valid.en, languages: [de, en]}
    - {source: valid.en, target: valid.de, languages: [en, de]}
  test:
    - {source: test.de, target: test.en, languages: [de, en]}
    - {source: test.en, target: test.de, languages: [en, de]}
"""


def texts(translations: Iterable[Any]) -> list[str]:
    return [each.text for each in translations]


def config_text(corpora: str = CORPORA, **replaced: str) -> str:
    head, _, rest = CONFIG.partition("  train:")
    text = f"{head}{corpora}  subwords:{rest.partition('  subwords:')[2]}"
    text = text.replace("every: 2, metric: loss", "every: 2, first: 1").replace("log_every: 1", "snapshots: 12")
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus and a run of two updates in both directions. Read it only."""
    return train_in(tmp_path_factory.mktemp("languages"), config_text())


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def scaled(translator: Translator) -> Translator:
    """Scales the weights up, so that the first tokens matter."""
    with torch.no_grad():
        for parameter in translator.trained.model.parameters():
            parameter.mul_(3.0)
    return translator


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    """Without a language."""
    return scaled(library.load(folder / "run", device="cpu", precision="float32", overrides=["search.beam=2"]))


PAIRS = ["--source", "test.de", "--target", "test.en"]


@pytest.mark.parametrize(
    "command",
    [
        ["translate", "run", "--input", "test.de"],
        ["align", "run", *PAIRS],
        ["score", "run", *PAIRS],
        ["evaluate", "run", "--source", "test.de", "--reference", "test.en"],
        ["states", "run", "--source", "test.de", "--output", "x.svg"],
        ["aligner", "run", *PAIRS],
    ],
    ids=lambda command: command[0],
)
def test_a_language_must_be_chosen_and_be_one_of_the_model(command: list[str], nmt: Command) -> None:
    assert nmt(*command).error == "run translates into de, en: choose one with --to LANGUAGE"
    assert nmt(*command, "--to", "fr").error == "--to fr: run translates into de, en"


def test_other_commands_refuse_an_unknown_language(nmt: Command, trained: Path) -> None:
    for command in ("report", "serve", "evaluate"):
        assert nmt(command, "run", "--to", "fr").error == "--to fr: run translates into de, en"
    run = trained / "run"
    says = f"--to en: {run} was trained on corpora without languages; leave it out"
    assert nmt("translate", run, "--to", "en", "--input", "test.de").error == says
    reverse = ["align", "run", *PAIRS, "--to", "en", "--reverse", "run"]
    assert nmt(*reverse).error == "run translates into de, en: choose one with --reverse-to LANGUAGE"
    assert nmt(*reverse, "--reverse-to", "fr").error == "--reverse-to fr: run translates into de, en"
    assert "of the same run as the forward model" in nmt(*reverse, "--reverse-to", "en").error


@pytest.mark.parametrize("odd", [">>fr<<", "1", "null", "~", "true", "[a]", "{", "'", "a: b", "", "\x1b[31m"])
def test_the_language_is_text_whatever_it_looks_like(odd: str, nmt: Command) -> None:
    shown = odd.replace("\x1b", "\\x1b")
    error = nmt("translate", "run", "--input", "test.de", "--to", odd).error
    assert error == f"--to {shown}: run translates into de, en"


def test_the_command_line_translates_into_the_language(nmt: Command, here: Path, translator: Translator) -> None:
    """It may be written as OPUS-MT does."""
    found = {}
    for to in ("de", "en", ">>en<<"):
        done = nmt("translate", "run", "--to", to, "--input", "test.de", "--precision", "float32")
        found[to] = done.output.splitlines()
        loaded = library.load("run", target_language=to, precision="float32")
        assert found[to] == texts(loaded.translate(lines_of("test.de")))
        assert f">>{loaded.search.to}<<" in (to, f">>{to}<<")
        assert translator.to(target_language=to).search.to == loaded.search.to
    assert found["de"] != found["en"]
    TranslatorEngine(translator).check(RequestOptions(to=">>en<<"))


def test_suggested_commands_name_the_language(nmt: Command, folder: Path, tmp_path: Path) -> None:
    done = nmt("translate", "run", "--to", "en", "--input", "test.de", "--output", tmp_path / "out")
    next_command = done.stderr.rpartition("next: nmt ")[2].split()
    assert nmt(*next_command).code == 0
    assert (tmp_path / "out.html").exists()
    assert "use it with nmt translate run/averaged --to LANGUAGE" in nmt("average", "run").stderr


def test_a_model_of_several_languages_translates_back(nmt: Command, here: Path, tmp_path: Path) -> None:
    (tmp_path / "mono.en").write_text("three cats\n")
    one = "".join(line for line in CORPORA.splitlines(keepends=True) if "[en, de]" not in line)
    config = here / "one.yaml"
    config.write_text(config_text(one))
    text = ("--target-text", tmp_path / "mono.en", "--output", tmp_path / "made")
    assert nmt("augment", config, "--reverse", "run", *text).code == 0
    (source,) = lines_of(tmp_path / "made/pairs/back-translation.de")
    into_german = library.load("run", target_language="de").translate("three cats").text
    assert source == f"<BT> {' '.join(into_german.split())}"


def test_python_chooses_a_language_by_name(translator: Translator) -> None:
    unknown = "target_language='fr': .*translates into de, en"
    faults: list[tuple[Callable[[], object], str]] = [
        (lambda: translator.translate("der Hund"), "into de, en: choose one with target_language='LANGUAGE'"),
        (lambda: translator.to(target_language="fr"), unknown),
        (lambda: translator.to("en"), r"device='en': is a language; write to\(target_language='en'\)"),
        (lambda: library.load(translator.trained.checkpoint, target_language="fr"), unknown),
    ]
    for wrong, message in faults:
        with pytest.raises(InputError, match=message):
            wrong()
    english = translator.to(target_language="en")
    assert english.trained.model is translator.trained.model
    assert english.to() is english
    assert translator.translate("der Hund", target_language="en") == english.translate("der Hund")


def test_one_run_aligns_both_directions(translator: Translator, nmt: Command) -> None:
    both = BothDirections(translator.to(target_language="en"), translator.to(target_language="de"), join("union"))
    (pair,) = both.align(["Hund und Katze."], ["dog and cat."])
    assert pair.weights_TS.shape == (3, 3)
    models = [library.load("run", precision="float32", target_language=language) for language in ("en", "de")]
    expected = BothDirections(*models, join("union")).align(lines_of("test.de"), lines_of("test.en"))
    directions = ("--to", "en", "--reverse", "run", "--reverse-to", "de", "--symmetrize", "union")
    found = nmt("align", "run", *PAIRS, *directions, "--precision", "float32").output.splitlines()
    assert found == [pharaoh_line(each.links, 0) for each in expected]


def test_the_token_is_read_before_the_first_word(translator: Translator) -> None:
    """The first source words that wait-k reads are those of a model without languages, whatever follows."""
    own = waiting(translator.to(target_language="en"), 2)
    model: Any = own.engine.model  # type: ignore[attr-defined]
    tokenizer = translator.trained.tokenizers.source
    ids = [*own.trained.source_prefix, *tokenizer.encode("Hund und Katze."), 3]
    memory = model.encode(torch.tensor([ids]))
    starts = [piece.startswith("\u2581") for piece in tokenizer.pieces(ids[1:-1])]
    words = np.cumsum(starts)
    assert memory.word_BS[0].tolist() == [1, *words.tolist(), words[-1]]
    lines, english = ["Hund und Katze.", "eins zwei drei"], translator.to(target_language="en")
    free = replace(english, search=english.search.model_copy(update={"repetition_margin": None}))
    assert texts(waiting(english, 50).translate(lines)) == texts(free.translate(lines, beam=1))


def test_an_alignment_layer_reads_the_token_and_gives_it_no_link(here: Path, translator: Translator) -> None:
    trained = translator.trained
    data = opened(trained.experiment.data, run=Path("run"))
    sources, targets, prefixes = _training_text(replace(trained, checkpoint=here / "run/best"))
    assert prefixes == [data.train.prefix(row) for row in range(len(data.train))]
    aligner = learn_word_aligner(sources, targets)
    pairs = _linked_pairs(trained, aligner, sources, targets, prefixes)
    assert len(pairs) == 120
    for row, pair in enumerate(pairs):
        assert list(pair.source) == [*data.train.prefix(row), *data.train.source(row)]
        assert pair.link_TS.shape == (len(pair.target), len(pair.source))
        assert not pair.link_TS[:, 0].any()
        assert pair.link_TS.any()
    layer = AlignmentLayer(trained.model.encoder.size, trained.model.decoder.readout_size).eval()
    sides = (trained.tokenizers.source, "Hund und Katze."), (trained.tokenizers.target, "dog and cat.")
    source, target = (tokenizer.encode_words(text) for tokenizer, text in sides)
    (found,) = ModelAligner(trained.to("en"), aligner, layer).align([source], [target], {}, share=0.0, first_line=1)
    read = [[trained.tokenizers.source.languages["en"], *source.ids]], [target.ids]
    ((forward_TS, backward_TS),) = weights(layer, trained.model, *read, trained.compute, batch_tokens=1000)
    word_T, word_S = np.array(word_indices(target)), np.array(word_indices(source))
    for i, j in product(range(3), repeat=2):
        here = np.ix_(np.flatnonzero(word_T == i), 1 + np.flatnonzero(word_S == j))  # behind the token
        both = forward_TS[here].sum(axis=1).mean() * backward_TS[here].sum(axis=0).mean()
        assert found.weights_TS[i, j] == pytest.approx(np.sqrt(both), rel=1e-4)


def test_evaluate_scores_each_test_corpus_in_its_own_language(nmt: Command) -> None:
    tree = nmt("evaluate", "run", "--json").tree
    assert list(tree) == ["de-en test.de + test.en", "en-de test.en + test.de"]
    for to, source, name in zip(("en", "de"), ("de", "en"), tree, strict=True):
        files = ["--source", f"test.{source}", "--reference", f"test.{to}"]
        assert nmt("evaluate", "run", "--to", to, *files, "--json").tree == tree[name]
    assert list(nmt("evaluate", "run", "--to", "de", "--json").tree) == ["en-de test.en + test.de"]


def test_info_and_report_name_the_languages(nmt: Command, tmp_path: Path) -> None:
    text = nmt("info", "run").stdout
    assert text.startswith("run, de to en, en to de: ")
    assert "nmt translate run --to LANGUAGE < FILE" in text
    done = nmt("report", "run", "--to", "de", "--output", tmp_path / "report.html")
    assert "its translations are those into de; --to chooses another language" in done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "de → en, en → de" in page


def test_a_server_takes_the_language_of_each_request(here: Path, translator: Translator) -> None:
    engine = TranslatorEngine(translator)
    english = TranslatorEngine(translator.to(target_language="en"))
    assert (engine.targets, engine.languages, english.targets) == (("de", "en"), None, ("en", "de"))
    with pytest.raises(InputError, match="^to: is missing; choose one of de, en$"):
        engine.check(RequestOptions())
    with pytest.raises(InputError, match="^to: this model does not translate into 'fr'; choose one of de, en$"):
        engine.check(RequestOptions(to="fr"))
    english.check(RequestOptions())
    for to in engine.targets:
        engine.check(RequestOptions(to=to))
        (answer,) = engine.answer(["Hund und Katze."], RequestOptions(to=to), lambda: None)
        translation = translator.to(target_language=to).translate("Hund und Katze.")
        assert answer.tree["translations"][0]["text"] == translation.text
    sample = _sample(translator.trained)  # on which an export is compared
    assert [source[0] for source in sample] == [translator.trained.tokenizers.source.languages["en"]] * 10


@pytest.mark.parametrize(("corpora", "has"), [(CORPORA, "de, en"), ("  train: {pairs: a}\n", "no named one")])
def test_a_training_refuses_an_unknown_language_at_once(corpora: str, has: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(config_text(corpora, **{"snapshots: 12": "snapshots: 0"}))
    settings = experiments.load(tmp_path / "config.yaml", [f"run={tmp_path}/run", "search.to=fr"])
    with pytest.raises(InputError, match=f"^search.to: fr: data.train is into {has}; leave it out$"):
        train(settings)


def test_a_model_of_one_target_language_needs_no_choice(here: Path, tmp_path: Path, nmt: Command) -> None:
    corpora = "  train: {source: train.de, target: train.en, languages: [de, en]}\n"
    text = config_text(corpora, **{"run: run": f"run: {tmp_path}/run", "snapshots: 12": "snapshots: 0"})
    (tmp_path / "config.yaml").write_text(text)
    train(experiments.load(tmp_path / "config.yaml", with_corpora=True), precision="float32")
    for to in ([], ["--to", "en"]):
        assert nmt("translate", tmp_path / "run", *to, "--input", "test.de").code == 0
    valid = "data.valid={source: valid.de, target: valid.en, languages: [de, en]}"
    assert "translations 0 are right" in nmt("calibrate", tmp_path / "run", "--set", valid).error
    tuned = nmt("init", "tuned", *PAIRS, "--from", tmp_path / "run", "--no-time")  # would read no language
    assert tuned.error.startswith(f"--from {tmp_path}/run: reads languages or previous sentences; copy its config")


def test_a_calibration_is_for_one_target_language(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nmt: Command
) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True, symlinks=True)
    run = tmp_path / "run"
    monkeypatch.setattr(calibrate, "MIN_PAIRS", 0)
    assert nmt("calibrate", run, "--to", "de").code == 0
    assert json.loads((run / "confidence.json").read_text())["languages"] == ["en", "de"]
    assert nmt("translate", run, "--to", "de", "--confidence", "--input", "test.en").code == 0
    refused = nmt("translate", run, "--to", "en", "--confidence", "--input", "test.de").error
    assert refused.endswith(f"for another target language than en; make it with: nmt calibrate {run} --to en")
    judged = library.load(run, device="cpu", overrides=["search.to=de"], confidence=True)
    with pytest.raises(InputError, match="for another target language than en"):
        judged.to(target_language="en").translate("Hund")


def test_pairs_are_taken_in_the_direction_of_the_translation(
    here: Path, tmp_path: Path, translator: Translator
) -> None:
    own = tmp_path / "run"
    shutil.copytree(here / "run", own, symlinks=True)
    pairs = tmp_path / "pairs.tmx"
    unit = '<tu><tuv xml:lang="de"><seg>Hund</seg></tuv><tuv xml:lang="en"><seg>wet rain</seg></tuv></tu>'
    pairs.write_text(f'<tmx version="1.4"><header srclang="*all*"/><body>{unit}</body></tmx>', encoding="utf-8")
    for to, source, target in (("en", "Hund", "wet rain"), ("de", "wet rain", "Hund")):
        search = [f"search.to={to}", "search.repetition_margin=null"]
        followed = library.load(own, device="cpu", overrides=search, neighbors=pairs)
        assert followed.translate(source).text == target
        with pytest.raises(InputError, match="--neighbors: the pairs are into another language"):
            followed.to(target_language="de" if to == "en" else "en").translate("Hund")
        moved = translator.to(target_language=to)
        given = {"de": "Hund", "en": "dog"}
        direction = ("Hund", "dog") if to == "en" else ("dog", "Hund")
        assert library.evaluate(moved, [given]) == library.evaluate(moved, [direction])
    assert len(list(own.glob("neighbors-*"))) == 2


@pytest.mark.parametrize("joint", [True, False])
def test_a_run_with_another_vocabulary_keeps_the_rows_of_its_pieces(
    joint: bool, here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new direction, whose token and corpus bring pieces that the old model has not."""
    (tmp_path / "train.cs").write_text("".join(f"{line} ahoj světe\n" for line in lines_of("train.en")))
    old = replaced_run(tmp_path, "old", joint, CORPORA)
    czech = f"    - {{source: train.de, target: {tmp_path}/train.cs, languages: [de, cs]}}\n"
    more = CORPORA.replace("  valid:", f"{czech}  valid:")
    capsys.readouterr()
    new = replaced_run(tmp_path, "new", joint, more, start_from=old)
    assert f"starting from {old}/best with the rows of " in capsys.readouterr().err
    weights, pieces = [], []
    for run in (old, new):
        tokenizers = TokenizerPair.load(run)
        pieces.append([each.pieces(range(each.size)) for each in (tokenizers.source, tokenizers.target)])
        loaded = library.load(run / "latest", precision="float32", device="cpu")
        weights.append(dict(loaded.trained.model.named_parameters()))
    assert "<2cs>" in pieces[1][0]
    tables = {"encoder.embedding.table.weight": 0, "decoder.embedding.table.weight": 1, "output.weight_VD": 1}
    tables["output.bias_V"] = 1
    for name, before in weights[0].items():
        after = weights[1][name]
        if name not in tables:
            torch.testing.assert_close(after, before, atol=1e-5, rtol=0)
            continue
        one, other = pieces[0][tables[name]], pieces[1][tables[name]]
        common = [piece for piece in other if piece in one]
        assert 8 < len(common) < len(other)
        new_rows, old_rows = ([vocabulary.index(piece) for piece in common] for vocabulary in (other, one))
        torch.testing.assert_close(after[new_rows], before[old_rows], atol=1e-5, rtol=0)


def replaced_run(folder: Path, name: str, joint: bool, corpora: str, start_from: Path | None = None) -> Path:
    """Trains a run of one update, which hardly moves."""
    training = "training:\n  optimizer: {learning_rate: 1.0e-12}\n"
    replaced = {
        "run: run": f"run: {folder}/{name}",
        "joint: true": f"joint: {str(joint).lower()}",
        "snapshots: 12": "snapshots: 0",
        "updates: 2": "updates: 1",
        "training:\n": training if start_from is None else f"{training}  start_from: {start_from}\n",
    }
    path = folder / f"{name}.yaml"
    path.write_text(config_text(corpora, **replaced))
    return train(experiments.load(path, with_corpora=True), precision="float32")


def test_words_replaced_by_a_term_are_scored_with_the_language(translator: Translator, here: Path) -> None:
    """No constrained translation is cheap enough: those with the subwords that their text has are replaced ones."""
    sources = lines_of("test.de")
    words = sorted({word for source in sources for word in source.lower().rstrip(".").split()})
    english, target = translator.to(target_language="en"), translator.trained.tokenizers.target
    terms = with_glossary(english, Glossary(tuple(Term(word, ("the",)) for word in words)), max_loss=-1e3)
    replaced = [
        (source, found)
        for source, found, free in zip(sources, terms.translate(sources), english.translate(sources), strict=True)
        if found.text != free.text and list(found.tokens) == target.pieces(target.encode(found.text))
    ]
    assert replaced
    for source, found in replaced:
        assert found.log_prob == pytest.approx(english.score(source, found.text).log_prob, abs=1e-3)
