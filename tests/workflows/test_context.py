"""A model that reads previous sentences, of two languages, by the command line and from Python."""

from __future__ import annotations

import asyncio
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
from nmt.training.checkpoint import read_tensors
from nmt.training.run_directory import snapshot_paths
from nmt.translator.aligner import without_prefix
from nmt.translator.segmentation import PlainLine, Segmentation, SegmentTranslation
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputOptions
from nmt.workflows import align as align_workflow
from nmt.workflows import translate as translate_workflow
from nmt.workflows.prepare import prepare
from nmt.workflows.train import train
from tests.extras.service.fakes import Client
from tests.workflows.runs import Command, in_process, write_corpus
from tests.workflows.test_languages import config_text

CONTEXT = {"  subwords:": "  context: 2\n  subwords:"}
TEXT = ["Hund und Katze.", "eins zwei drei.", "", "grün und grün.", "drei Hund.", "zwei.", "Katze.", "  ", "", "eins."]


def write_documents(folder: Path) -> None:
    """The corpus of other tests, with a blank line behind every fourth pair."""
    write_corpus(folder)
    for path in (path for pattern in ("*.de", "*.en") for path in folder.glob(pattern)):
        lines = path.read_text().splitlines()
        for place in range(len(lines) - len(lines) % 4, 0, -4):
            lines.insert(place, "")
        path.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of documents and a run of two updates in both directions. Read it only."""
    folder = tmp_path_factory.mktemp("context")
    write_documents(folder)
    (folder / "config.yaml").write_text(config_text(**CONTEXT))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train(experiments.load(Path("config.yaml")), precision="float32")
    return folder


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    """Into English. Weights are scaled up, so that the first tokens matter."""
    translator = library.load(
        folder / "run", target_language="en", device="cpu", precision="float32", overrides=["search.beam=2"]
    )
    with torch.no_grad():
        for parameter in translator.trained.model.parameters():
            parameter.mul_(3.0)
    return translator


@pytest.fixture
def nmt(here: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys)


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
    found = translator.translate(translator.document().sentences(TEXT))
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
    lines = [line for line in TEXT if line.strip()]
    targets = [" ".join(["dog"] * (1 + row)) for row in range(len(lines))]
    texts = [text for text in translator.document().sentences(TEXT) if text.strip()]
    trained, tokenizer = translator.trained, translator.trained.tokenizers.target
    ids = read_by_the_model(translator, TEXT)
    references = [tokenizer.encode(target) for target in targets]
    log_probs = token_log_probs(trained.model, ids, references, trained.compute, batch_tokens=1000)
    assert [each.log_prob for each in translator.score(texts, targets)] == [
        float(np.sum(each, dtype=np.float64)) for each in log_probs
    ]
    with_blanks = translator.predict([*texts, "", " "], [*targets, "", " "])  # which are between documents
    assert with_blanks == translator.predict(texts, targets)
    assert with_blanks.loss * with_blanks.tokens == pytest.approx(-sum(map(np.sum, log_probs)), rel=1e-5)


@pytest.mark.parametrize(
    ("method", "magnitude"),
    [("attention", "relative"), ("shifted-attention", "relative"), ("gradient", "raw"), ("gradient", "relative")],
)
def test_alignments_have_no_columns_for_context(method: Any, magnitude: Magnitude, translator: Translator) -> None:
    trained, request = translator.trained, AlignmentRequest(method, magnitude=magnitude)
    texts = [text for text in translator.document().sentences(TEXT) if text.strip()]
    targets = ["dog and cat."] * len(texts)
    ids = read_by_the_model(translator, TEXT)
    target_ids = [trained.tokenizers.target.encode(target) for target in targets]
    if "attention" in method:
        whole = [
            of_pair[0]
            for of_pair in forced_weights(
                trained.model, ids, target_ids, trained.compute, batch_tokens=1000, shifted=method != "attention"
            )
        ]
    else:
        found = gradient_weights(trained.model, ids, target_ids, trained.compute, requests=[request], batch_tokens=1000)
        whole = [of_pair[0] for of_pair in found]
    alignments = translator.aligner.align([request], texts, targets, level="subword")[request]
    pieces = translator.aligner.piece_weights(texts, targets)
    for text, alignment, piece, whole_TS in zip(texts, alignments, pieces, whole, strict=True):
        length = len(trained.tokenizers.source.encode(text)) + 1
        assert len(alignment.source_tokens) == length
        expected_TS = without_prefix(whole_TS, whole_TS.shape[1] - length, magnitude)
        np.testing.assert_allclose(alignment.weights_TS, expected_TS, rtol=1e-5, atol=1e-7)
        assert piece.weights_TS.shape == alignment.weights_TS.shape


def test_a_trained_aligner_has_no_columns_for_context(translator: Translator) -> None:
    trained = translator.trained
    texts = [text for text in translator.document().sentences(TEXT) if text.strip()]
    targets = ["dog and cat."] * len(texts)
    layer = AlignmentLayer(trained.model.encoder.size, trained.model.decoder.readout_size).eval()
    aligner = ModelAligner(trained, learn_word_aligner([*texts] * 2, targets * 2), layer)
    pairs = trained.encode_pairs(texts, targets, 1)
    found = aligner.align([one for one, _ in pairs], [other for _, other in pairs], {}, share=0.5, first_line=1)
    assert [each.weights_TS.shape for each in found] == [(3, len(text.split())) for text in texts]


def test_markup_is_put_back_by_the_weights_behind_its_own_sentences(translator: Translator) -> None:
    seen: list[Any] = []

    class Recorded(PlainLine):
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
    (here / "text").write_text("\n".join(TEXT))  # without an end of the last line
    command = ["translate", "run", "--to", "en", "--input", "text", "--precision", "float32"]
    whole = nmt(*command, "--context")
    assert whole.code == 0, whole.stderr
    loaded = library.load("run", target_language="en", precision="float32")
    expected = [each.text for each in loaded.translate(loaded.document().sentences(TEXT))]
    assert whole.stdout == "".join(f"{text}\n" for text in expected)
    for size in (1, 3):
        monkeypatch.setattr(translate_workflow, "WINDOW_LINES", size)
        assert nmt(*command, "--context").stdout == whole.stdout
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
    (here / "text").write_text("\n".join(TEXT))
    files = ["--input", "text", "--format", "jsonl", "--alignment", "--precision", "float32"]
    done = nmt("translate", "run", "--to", "en", "--context", *files)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["source"] for each in found] == TEXT
    loaded = library.load("run", target_language="en", precision="float32")
    texts = loaded.document().sentences(TEXT)
    for each, text in zip(found, texts, strict=True):
        if text.strip():
            (translation,) = each["translations"]
            (expected,) = loaded.align([text], [translation["text"]])
            np.testing.assert_allclose(translation["alignment"]["weights"], expected.weights_TS, atol=1e-4)


def test_sentences_of_a_paragraph_have_those_before_them(nmt: Command, here: Path) -> None:
    sentences = ["Hund Katze.", "Katze und Hund.", "Katze zwei.", "Hund drei.", "Katze."]
    (here / "lines").write_text("".join(f"{text}\n" for text in sentences))
    (here / "paragraphs").write_text("{} {}\n{}  {} {}\r\n".format(*sentences))
    command = ["translate", "run", "--to", "en", "--context", "--precision", "float32", "--input"]
    lines = nmt(*command, "lines").stdout.splitlines()
    assert nmt(*command, "paragraphs", "--document").stdout == (
        f"{lines[0]} {lines[1]}\n{lines[2]}  {lines[3]} {lines[4]}\r\n"
    )
    tagged = nmt(*command, "lines", "--markup").stdout
    (here / "lines").write_text("".join(f"<b>{text}</b>\n" for text in sentences))
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
        for lines in (translator.document().sentences(TEXT), translator.document().sentences(TEXT[::-1]), TEXT)
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
    assert found == [each.text for each in translator.translate(translator.document().sentences(TEXT))]
    assert found != [each.text for each in translator.translate(TEXT)]


def test_who_waits_has_read_the_sentences_before(nmt: Command, here: Path) -> None:
    (here / "text").write_text("\n".join(TEXT))
    command = ["translate", "run", "--to", "en", "--context", "--input", "text", "--precision", "float32"]
    whole = nmt(*command, "--beam", "1", "--format", "tsv").stdout
    assert whole.count("\n") == len(TEXT)
    assert nmt(*command, "--wait", "9", "--format", "tsv").stdout == whole
    loaded = library.load("run", target_language="en", precision="float32")
    sources, references = (Path(f"test.{side}").read_text().splitlines() for side in ("de", "en"))
    texts = waiting(loaded, 1).translate(loaded.document().sentences(sources))
    (bleu,) = scores([each.text for each in texts], references, metrics=("bleu",))
    tree = json.loads(
        nmt("evaluate", "run", "--source", "test.de", "--reference", "test.en", "--to", "en", "--wait", "1", "--json",
            "--precision", "float32").stdout
    )  # fmt: skip
    assert tree["wait"][0]["bleu"] == pytest.approx(bleu.value, abs=1e-3)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_states_are_those_behind_the_sentences_before(
    side: Any, translator: Translator, nmt: Command, here: Path
) -> None:
    texts = [text for text in translator.document().sentences(TEXT) if text.strip()]
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
    files = ["--source", "test.de", "--target", "test.en", "--output", "a.svg", "--line", "3"]
    assert nmt("states", "run", "--to", "en", *files).code == 0
    assert (here / "a.svg").read_text().count("&lt;break&gt;</text>") >= 2


def test_validation_and_evaluation_read_the_sentences_before(nmt: Command, here: Path) -> None:
    lines = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    (*_, last) = [line for line in lines if line["kind"] == "valid"]
    loaded = library.load("run/latest", target_language="en", precision="float32", overrides=["search.beam=1"])
    predictions = []
    for direction, to in (("de-en", "en"), ("en-de", "de")):
        sources, references = (Path(f"valid.{side}").read_text().splitlines() for side in direction.split("-"))
        texts, own = loaded.document().sentences(sources), loaded.to(target_language=to)
        hypotheses = [each.text for each in own.translate(texts)]
        predictions.append(own.predict(texts, references))
        for score in scores(hypotheses, references, metrics=("bleu", "chrf")):
            assert last[f"{score.name[:4].lower()} {direction}"] == pytest.approx(score.value, rel=1e-4)
    tokens = sum(each.tokens for each in predictions)
    assert last["loss"] == pytest.approx(sum(each.loss * each.tokens for each in predictions) / tokens, rel=1e-4)
    data = opened(loaded.trained.experiment.data, run=Path("run"))
    assert data.valid is not None
    rows = [row for row in range(len(data.valid)) if data.valid.corpus[row] == 0]
    ids = [data.valid.source(row).tolist() for row in rows]
    read = loaded.trained.prefixed(ids, [data.valid.source_texts()[row] for row in rows])
    assert read == [[*data.valid.prefix(row), *source] for row, source in zip(rows, ids, strict=True)]
    (*_, (_, snapshot)) = snapshot_paths(Path("run"))
    assert not any("<break>" in token for line in snapshot.read_text().splitlines() for token in line)
    tree = json.loads(nmt("evaluate", "run", "--json", "--precision", "float32")[1])
    test_sources = Path("test.de").read_text().splitlines()
    best = library.load("run", target_language="en", precision="float32")
    prediction = best.predict(best.document().sentences(test_sources), Path("test.en").read_text().splitlines())
    assert str(round(prediction.perplexity, 4))[:6] in json.dumps(tree)


@pytest.mark.parametrize("command", ["score", "align"])
def test_corpora_are_documents_across_windows(
    command: str, nmt: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--format", "jsonl"] if command == "align" else []
    files = ["run", "--to", "en", "--source", "test.de", "--target", "test.en", "--precision", "float32", *options]
    whole = nmt(command, *files)
    assert whole.code == 0, whole.stderr
    monkeypatch.setattr(align_workflow, "WINDOW_PAIRS", 3)
    in_windows = re.findall(r"-?\d+\.\d+", nmt(command, *files).stdout)
    assert list(map(float, in_windows)) == pytest.approx(
        list(map(float, re.findall(r"-?\d+\.\d+", whole.stdout))), abs=2e-3
    )
    without = nmt(command, *files, "--set", "data.context=0").stdout
    assert without.splitlines()[0] == whole.stdout.splitlines()[0]
    assert without.splitlines()[1] != whole.stdout.splitlines()[1]
    if command == "score":
        loaded = library.load("run", target_language="en", precision="float32")
        sources, targets = (Path(f"test.{side}").read_text().splitlines() for side in ("de", "en"))
        found = loaded.score(loaded.document().sentences(sources), targets)
        assert whole.stdout.splitlines() == [f"{each.score:.6f}" for each in found]


def test_a_training_goes_on_with_the_same_bits(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name, stops in (("whole", [4]), ("resumed", [3, 4])):
        for updates in stops:
            changes = [f"run={tmp_path / name}", f"training.stopping.updates={updates}", "training.snapshots=0"]
            train(experiments.load(Path("config.yaml"), changes), precision="float32")
    one, other = (read_tensors(tmp_path / name / "latest" / "model.safetensors") for name in ("whole", "resumed"))
    assert all(torch.equal(one[key], other[key]) for key in one)
    with pytest.raises(InputError, match="with other data.context"):
        train(experiments.load(Path("config.yaml"), [f"run={tmp_path / 'whole'}", "data.context=1"]))


def test_a_single_previous_sentence_is_kept_for_training(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    config = experiments.load(Path("config.yaml"), ["data.context=1"])
    data = prepare(config.data, run=tmp_path, seed=1)
    before_break = data.tokenizers.source.control("<break>")
    assert {data.train.prefix(row).count(before_break) for row in range(8)} == {0, 1}
