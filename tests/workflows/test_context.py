"""A model that reads previous sentences, of two languages, by the command line and from Python."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch

import nmt as library
from nmt import InputError
from nmt import experiment as experiments
from nmt.alignment import Magnitude
from nmt.alignment.extract import Extraction
from nmt.alignment.forced import forced_weights
from nmt.alignment.gradient import gradient_weights
from nmt.alignment.request import AlignmentRequest
from nmt.data.context import Sentence
from nmt.data.prepared import opened
from nmt.data.vocabulary import EOS
from nmt.evaluation.perplexity import token_log_probs
from nmt.evaluation.translation import scores
from nmt.extras.aligner.align import learn_word_aligner
from nmt.extras.aligner.layer import AlignmentLayer
from nmt.extras.aligner.model_aligner import ModelAligner
from nmt.extras.cluster import records
from nmt.extras.cluster.shards import Shard
from nmt.extras.decoding.wait_k import waiting
from nmt.extras.pages.states.trace import trace
from nmt.extras.service.app import create_app
from nmt.extras.service.batcher import Batcher, Batching, RequestOptions
from nmt.extras.service.engine import TranslatorEngine
from nmt.extras.service.messages import Limits
from nmt.extras.service.metrics import ServerMetrics
from nmt.training.run_directory import snapshot_paths
from nmt.translator.segmentation import MarkedLine, Segmentation, SegmentTranslation
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputOptions
from nmt.workflows import align as align_workflow
from nmt.workflows import translate as translate_workflow
from nmt.workflows.prepare import prepare
from tests.extras.service.fakes import Client
from tests.workflows.runs import (
    Command,
    assert_same_bits,
    json_lines,
    lines_of,
    measured,
    place,
    train_here,
    write_lines,
)
from tests.workflows.test_languages import config_text, scaled

CONTEXT = {"  subwords:": "  context: 2\n  subwords:"}
TEXT = ["Hund und Katze.", "eins zwei drei.", "", "grün und grün.", "drei Hund.", "zwei.", "Katze.", "  ", "", "eins."]


def write_documents(folder: Path) -> None:
    """Puts a blank line behind every fourth pair of the corpus of other tests."""
    for path in (path for pattern in ("*.de", "*.en") for path in folder.glob(pattern)):
        lines = lines_of(path)
        for row in range(len(lines) - len(lines) % 4, 0, -4):
            lines.insert(row, "")
        write_lines(path, lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of documents and a run of two updates in both directions. Read it only."""
    folder = place(tmp_path_factory.mktemp("context"), config_text(**CONTEXT))
    write_documents(folder)
    (folder / "text").write_text("\n".join(TEXT))  # without an end of the last line
    with contextlib.chdir(folder):
        train_here()
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    """Into English."""
    return scaled(library.load(folder / "run", **ENGLISH, device="cpu", overrides=["search.beam=2"]))


SENTENCES = [line for line in TEXT if line.strip()]
ENGLISH: dict[str, Any] = {"target_language": "en", "precision": "float32"}
TO_ENGLISH = ("run", "--to", "en", "--precision", "float32")
FILES = ("--source", "test.de", "--target", "test.en")


def in_documents(translator: Translator, lines: Sequence[str]) -> list[str]:
    """The sentences of documents, each of which knows those before it."""
    return list(translator.document().sentences(lines))


def sentences_of(translator: Translator) -> list[str]:
    return [text for text in in_documents(translator, TEXT) if text.strip()]


def read_by_the_model(translator: Translator, lines: list[str], number: int = 2) -> list[list[int]]:
    """The tokens of each line that is not blank, with what comes before, put together by hand."""
    tokenizer = translator.trained.tokenizers.source
    language, end = (tokenizer.control(piece) for piece in ("<2en>", "<break>"))
    assert language is not None
    assert end is not None
    found, before = [], list[list[int]]()
    for line in lines:
        ids = tokenizer.encode(line)
        if line.strip():
            found.append([language, *(token for each in before[-number:] for token in (*each, end)), *ids])
            before.append(ids)
        else:
            before = []
    return found


def test_the_search_reads_the_sentences_before(translator: Translator) -> None:
    expected = translator.engine.translate_ids(read_by_the_model(translator, TEXT), translator.search)
    texts = iter(translator.trained.tokenizers.target.detokenize(best.tokens) for best, *_ in expected)
    found = translator.translate(in_documents(translator, TEXT))
    assert [each.text for each in found] == [next(texts) if line.strip() else "" for line in TEXT]
    scored = [each.score for each, line in zip(found, TEXT, strict=True) if line.strip()]
    assert scored == pytest.approx([best.score for best, *_ in expected], rel=1e-5)
    plain = translator.translate(TEXT)
    assert plain[0].score == pytest.approx(found[0].score, rel=1e-5)
    assert plain[1].score != pytest.approx(found[1].score, rel=1e-5)
    document = translator.document()
    parts = [translator.translate(document.sentences([line]))[0].text for line in TEXT]
    assert parts == [each.text for each in found]


def test_sentences_before_leave_what_a_model_may_read_to_the_sentence(translator: Translator) -> None:
    trained = translator.trained
    limit = min(trained.experiment.data.filters.max_length, trained.experiment.search.max_source_tokens)
    before = " ".join(["Hund"] * limit)
    end = trained.tokenizers.source.control("<break>")
    (read,) = trained.prefixed([[7, 8, 9]], [Sentence("x", [before, before])])
    assert read[:1] == list(trained.source_prefix)
    assert read[-4:] == [end, 7, 8, 9]
    assert len(read[1:]) == limit


def test_pairs_are_scored_with_the_sentences_before(translator: Translator) -> None:
    targets = [" ".join(["dog"] * (1 + row)) for row in range(len(SENTENCES))]
    texts = sentences_of(translator)
    trained, tokenizer = translator.trained, translator.trained.tokenizers.target
    ids = read_by_the_model(translator, TEXT)
    references = [tokenizer.encode(target) for target in targets]
    log_probs = token_log_probs(trained.model, ids, references, trained.compute, batch_tokens=1000)
    sums = [float(np.sum(each, dtype=np.float64)) for each in log_probs]
    assert [each.log_prob for each in translator.score(texts, targets)] == sums
    with_blanks = translator.predict([*texts, "", " "], [*targets, "", " "])  # which are between documents
    assert with_blanks == translator.predict(texts, targets)
    assert with_blanks.loss * with_blanks.tokens == pytest.approx(-sum(map(np.sum, log_probs)), rel=1e-5)


@pytest.mark.parametrize(
    ("method", "magnitude"),
    [
        *((method, "relative") for method in ("attention", "shifted-attention", "gradient", "input-x-gradient")),
        ("gradient", "raw"),
        ("input-x-gradient", "signed"),
    ],
)
def test_alignments_have_no_columns_for_context(method: Any, magnitude: Magnitude, translator: Translator) -> None:
    trained, request = translator.trained, AlignmentRequest(method, magnitude=magnitude)
    texts = sentences_of(translator)
    targets = ["dog and cat."] * len(texts)
    ids = read_by_the_model(translator, TEXT)
    target_ids = [trained.tokenizers.target.encode(target) for target in targets]
    given = (trained.model, ids, target_ids, trained.compute)
    if "attention" in method:
        found = forced_weights(*given, batch_tokens=1000, shifted=method != "attention")
    else:
        found = gradient_weights(*given, requests=[request], batch_tokens=1000)
    alignments = translator.aligner.align([request], texts, targets, level="subword")[request]
    pieces = translator.aligner.piece_weights(texts, targets)
    of_words = translator.aligner.align([request], texts, targets)[request]
    for text, alignment, piece, words, (whole_TS, *_) in zip(texts, alignments, pieces, of_words, found, strict=True):
        length = len(trained.tokenizers.source.encode(text)) + 1
        assert len(alignment.source_tokens) == length
        expected_TS = whole_TS[:, whole_TS.shape[1] - length :].astype(np.float64)
        if magnitude == "relative":
            expected_TS /= expected_TS.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(alignment.weights_TS, expected_TS, rtol=1e-5, atol=1e-7)
        assert piece.weights_TS.shape == alignment.weights_TS.shape
        np.testing.assert_allclose(piece.weights_TS.sum(axis=1), 1, atol=1e-6)
        assert words.weights_TS.shape == (3, len(text.split()))


def test_a_trained_aligner_has_no_columns_for_context(translator: Translator) -> None:
    trained = translator.trained
    texts = sentences_of(translator)
    targets = ["dog and cat."] * len(texts)
    layer = AlignmentLayer(trained.model.encoder.size, trained.model.decoder.readout_size).eval()
    aligner = ModelAligner(trained, learn_word_aligner([*texts] * 2, targets * 2), layer)
    pairs = trained.encode_pairs(texts, targets, 1)
    found = aligner.align([one for one, _ in pairs], [other for _, other in pairs], {}, share=0.5, first_line=1)
    assert [each.weights_TS.shape for each in found] == [(3, len(text.split())) for text in texts]


def test_markup_is_put_back_by_the_weights_behind_its_own_sentences(translator: Translator) -> None:
    seen: list[Any] = []

    class Recorded(MarkedLine):
        def restore(self, translation: str, segments: Sequence[SegmentTranslation], extraction: Extraction) -> str:
            seen.append(segments[0].weights)
            return translation

    search = translator.search.model_copy(update={"markup": True})
    lines = translator.document().sentences(["Hund.", "Katze.", "zwei.", "Katze."])
    segmentation = Segmentation(
        search, translator.trained, len, lambda line, _: Recorded(line, has_markup=True), lines, [False] * 4
    )
    segmentation.join([(Translation("cat.", 0.0, 0.0),)] * 4, lambda: translator.aligner)
    expected = [translator.aligner.piece_weights([line], ["cat."])[0] for line in lines]
    for found, own in zip(seen, expected, strict=True):
        np.testing.assert_allclose(found.weights_TS, own.weights_TS, atol=1e-6)
    assert np.abs(expected[1].weights_TS - expected[3].weights_TS).max() > 1e-5


def test_every_line_gives_one_whatever_the_windows(nmt: Command, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["translate", *TO_ENGLISH, "--input", "text"]
    whole = nmt(*command, "--context").output
    loaded = library.load("run", **ENGLISH)
    expected = [each.text for each in loaded.translate(in_documents(loaded, TEXT))]
    assert whole == "".join(f"{text}\n" for text in expected)
    for size in (1, 3):
        monkeypatch.setattr(translate_workflow, "WINDOW_LINES", size)
        assert nmt(*command, "--context").stdout == whole
    alone = nmt(*command, "--format", "tsv").stdout
    rows = [row.split("\t") for row in alone.splitlines()]
    found = [(number, rank, float(score), text) for number, rank, score, text in rows]
    assert found == [
        (str(number), "1", pytest.approx(each.score, abs=1e-4), each.text)  # another window rounds differently
        for number, each in enumerate(loaded.translate(TEXT), 1)
    ]
    with_context = nmt(*command, "--context", "--format", "tsv").stdout
    assert with_context.splitlines()[0].split("\t")[3] == rows[0][3]
    assert with_context.splitlines()[1] != alone.splitlines()[1]


def test_an_alignment_of_a_translation_reads_the_sentences_before(nmt: Command, here: Path) -> None:
    files = ["--input", "text", "--format", "jsonl", "--alignment"]
    done = nmt("translate", *TO_ENGLISH, "--context", *files)
    found = [json.loads(line) for line in done.output.splitlines()]
    assert [each["source"] for each in found] == TEXT
    loaded = library.load("run", **ENGLISH)
    texts = in_documents(loaded, TEXT)
    for each, text in zip(found, texts, strict=True):
        if text.strip():
            (translation,) = each["translations"]
            (expected,) = loaded.align([text], [translation["text"]])
            np.testing.assert_allclose(translation["alignment"]["weights"], expected.weights_TS, atol=1e-4)


def test_sentences_of_a_paragraph_have_those_before_them(nmt: Command, here: Path) -> None:
    sentences = ["Hund Katze.", "Katze und Hund.", "Katze zwei.", "Hund drei.", "Katze."]
    write_lines("lines", sentences)
    (here / "paragraphs").write_text("{} {}\n{}  {} {}\r\n".format(*sentences))
    command = ["translate", *TO_ENGLISH, "--context", "--input"]
    lines = nmt(*command, "lines").stdout.splitlines()
    expected = "{} {}\n{}  {} {}\r\n".format(*lines)
    assert nmt(*command, "paragraphs", "--document").stdout == expected
    tagged = nmt(*command, "lines", "--markup").stdout
    write_lines("lines", (f"<b>{text}</b>" for text in sentences))
    assert nmt(*command, "lines", "--markup").stdout == "".join(f"<b>{line}</b>\n" for line in tagged.splitlines())


def test_a_model_without_context_refuses_it(nmt: Command, trained: Path, here: Path) -> None:
    run = trained / "run"
    says = f"--context: {run.resolve()} was trained without data.context; leave it out"
    assert nmt("translate", run, "--context", "--input", "test.de").error == says
    with pytest.raises(InputError, match="was trained without data.context"):
        library.load(run).document()
    claimed = nmt("translate", run, "--context", "--input", "test.de", "--set", "data.context=1")
    assert claimed.error == f"{run.resolve()}: its vocabulary has no token <break>; restore its config"
    with pytest.raises(InputError, match="^context: this model was trained without data.context; leave it out$"):
        TranslatorEngine(library.load(run)).check(RequestOptions(context=True))


def test_a_request_with_context_is_a_document_in_whatever_batches(translator: Translator) -> None:
    ready = threading.Event()
    batcher = Batcher(lambda: TranslatorEngine(translator), Batching(sentences=2), on_ready=ready.set)

    async def talk() -> list[httpx.Response]:
        client = Client(create_app(batcher, Limits(), ServerMetrics()))
        requests = [(TEXT, True), (TEXT[::-1], True), (TEXT, False)]
        return await asyncio.gather(*(client.translate(texts, context=context) for texts, context in requests))

    batcher.start()
    assert ready.wait(20)
    responses = asyncio.run(talk())
    batcher.close()
    batcher.join(20)
    assert not batcher.is_alive()
    expected = [
        translator.translate(lines)
        for lines in (in_documents(translator, TEXT), in_documents(translator, TEXT[::-1]), TEXT)
    ]
    for response, of_texts in zip(responses, expected, strict=True):
        results = response.json()["results"]
        assert [each["translations"][0]["text"] for each in results] == [each.text for each in of_texts]
        scores = [each["translations"][0]["score"] for each in results]
        assert scores == pytest.approx([each.score for each in of_texts], rel=1e-5, abs=2e-6)
    assert [each["source"] for each in responses[1].json()["results"]] == TEXT[::-1]


@pytest.mark.parametrize("kind", ["txt", "jsonl", "parquet"])
def test_a_shard_is_in_document_order(
    kind: str, translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "WINDOW_LINES", 3)
    source, target = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    if kind == "parquet":
        arrow = pytest.importorskip("pyarrow")
        tables = pytest.importorskip("pyarrow.parquet")
        tables.write_table(arrow.table({"text": TEXT}), source, row_group_size=4)
    else:
        lines = TEXT if kind == "txt" else [json.dumps({"text": text}) for text in TEXT]
        source.write_text("".join(f"{line}\n" for line in lines))
    options = records.ShardOptions(OutputOptions(), "text", translator.document())
    tally = records.translate_shard(translator, options, Shard.of(source), target)
    assert tally.lines == len(TEXT)
    if kind == "txt":
        found = target.read_text().split("\n")[:-1]
    elif kind == "jsonl":
        found = [json.loads(line)["translation"] for line in target.read_text().splitlines()]
    else:
        found = tables.read_table(target)["translation"].to_pylist()
    assert found == [each.text for each in translator.translate(in_documents(translator, TEXT))]
    assert found != [each.text for each in translator.translate(TEXT)]


def test_who_waits_has_read_the_sentences_before(nmt: Command, here: Path) -> None:
    command = ["translate", *TO_ENGLISH, "--context", "--input", "text"]
    whole = nmt(*command, "--beam", "1", "--format", "tsv", "--set", "search.repetition_margin=null").stdout
    assert whole.count("\n") == len(TEXT)
    assert nmt(*command, "--wait", "9", "--format", "tsv").stdout == whole
    loaded = library.load("run", **ENGLISH)
    sources, references = map(lines_of, ("test.de", "test.en"))
    texts = waiting(loaded, 1).translate(in_documents(loaded, sources))
    (bleu,) = scores([each.text for each in texts], references, metrics=("bleu",))
    tree = nmt("evaluate", *TO_ENGLISH, "--source", "test.de", "--reference", "test.en", "--wait", "1", "--json").tree
    assert tree["wait"][0]["bleu"] == pytest.approx(bleu.value, abs=1e-3)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_states_are_those_behind_the_sentences_before(
    side: Any, translator: Translator, nmt: Command, here: Path
) -> None:
    texts = sentences_of(translator)
    model = translator.trained.model
    for text, ids in zip(texts, read_by_the_model(translator, TEXT), strict=True):
        found = trace(translator.trained, text, "dog.", side=side, layer=None, direction="forward", line=1)
        source_1S = torch.tensor([[*ids, EOS]])
        target_1T = torch.tensor([[*translator.trained.tokenizers.target.encode("dog."), EOS]])
        if side == "encoder":
            own_SD = model.encoder(model.encoder.embed(source_1S), source_1S == model.pad).states_BSD[0]
            assert list(found.tokens) == translator.trained.tokenizers.source.pieces(source_1S[0].tolist())
            np.testing.assert_allclose(found.states_TD, own_SD[:, : own_SD.shape[1] // 2], atol=1e-5)
        else:
            memory = model.encode(source_1S)
            state = model.step(model.first_token(1, source_1S.device), memory, model.start(memory)).state
            np.testing.assert_allclose(found.states_TD[:1], state.stack.hidden[-1], atol=1e-5)
            assert len(found.states_TD) == target_1T.shape[1]
    assert nmt("states", "run", "--to", "en", *FILES, "--output", "a.svg", "--line", "3").code == 0
    assert (here / "a.svg").read_text().count("&lt;break&gt;</text>") >= 2


def test_validation_and_evaluation_read_the_sentences_before(nmt: Command, here: Path) -> None:
    (*_, last) = measured("run", "valid")
    search = ["search.beam=1", "search.repetition_margin=null"]  # as validations search
    loaded = library.load("run/latest", target_language="en", precision="float32", overrides=search)
    predictions = []
    for direction, to in (("de-en", "en"), ("en-de", "de")):
        sources, references = (lines_of(f"valid.{side}") for side in direction.split("-"))
        texts, own = in_documents(loaded, sources), loaded.to(target_language=to)
        hypotheses = [each.text for each in own.translate(texts)]
        predictions.append(own.predict(texts, references))
        for score in scores(hypotheses, references, metrics=("bleu", "chrf")):
            assert last[f"{score.name[:4].lower()} {direction}"] == pytest.approx(score.value, rel=1e-4)
    for name in ("bleu", "chrf"):
        assert last[name] == pytest.approx((last[f"{name} de-en"] + last[f"{name} en-de"]) / 2, rel=1e-4)
    tokens = sum(each.tokens for each in predictions)
    assert last["loss"] == pytest.approx(sum(each.loss * each.tokens for each in predictions) / tokens, rel=1e-4)
    data = opened(loaded.trained.experiment.data, run=Path("run"))
    assert data.valid is not None
    rows = [row for row in range(len(data.valid)) if data.valid.corpus[row] == 0]
    ids = [data.valid.source(row).tolist() for row in rows]
    read = loaded.trained.prefixed(ids, [data.valid.source_texts()[row] for row in rows])
    assert read == [[*data.valid.prefix(row), *source] for row, source in zip(rows, ids, strict=True)]
    (*_, (_, snapshot)) = snapshot_paths(Path("run"))
    noted = json_lines(snapshot)
    assert len(noted) == 12
    assert not any(token in ("<break>", "<2en>", "<2de>") for line in noted for token in line["source_tokens"])
    tree = nmt("evaluate", "run", "--json", "--precision", "float32").tree
    best = library.load("run", **ENGLISH)
    prediction = best.predict(in_documents(best, lines_of("test.de")), lines_of("test.en"))
    assert str(round(prediction.perplexity, 4))[:6] in json.dumps(tree)


@pytest.mark.parametrize("command", ["score", "align"])
def test_corpora_are_documents_across_windows(
    command: str, nmt: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--format", "jsonl"] if command == "align" else []

    def figures(*more: str) -> list[Any]:
        lines = nmt(command, *TO_ENGLISH, *FILES, *options, *more).output.splitlines()
        return [pytest.approx([float(each) for each in re.findall(r"-?\d+\.\d+", line)], abs=2e-3) for line in lines]

    whole, without = figures(), figures("--set", "data.context=0")
    monkeypatch.setattr(align_workflow, "WINDOW_PAIRS", 3)
    for line, other in zip(figures(), whole, strict=True):
        assert line.expected == other
    assert without[0].expected == whole[0]
    assert without[1].expected != whole[1]
    if command == "score":
        loaded = library.load("run", **ENGLISH)
        sources, targets = map(lines_of, ("test.de", "test.en"))
        found = loaded.score(in_documents(loaded, sources), targets)
        assert [[each.score] for each in found] == whole


def test_a_training_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    for name, stops in (("whole", [4]), ("resumed", [3, 4])):
        for updates in stops:
            train_here(f"run={tmp_path / name}", f"training.stopping.updates={updates}", "training.snapshots=0")
    assert_same_bits(tmp_path / "whole" / "latest", tmp_path / "resumed" / "latest", "model.safetensors")
    with pytest.raises(InputError, match="with other data.context"):
        train_here(f"run={tmp_path / 'whole'}", "data.context=1")


def test_a_single_previous_sentence_is_kept_for_training(tmp_path: Path) -> None:
    data = prepare(experiments.load(Path("config.yaml"), ["data.context=1"]).data, run=tmp_path, seed=1)
    before_break = data.tokenizers.source.control("<break>")
    assert {data.train.prefix(row).count(before_break) for row in range(8)} == {0, 1}
