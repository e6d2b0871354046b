"""``nmt evaluate``: scores against sacreBLEU, perplexities against plain loops, test corpora and lengths of sources."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

import nmt as package
from nmt.evaluation.by_length import as_tree, by_length
from nmt.evaluation.translation import scores
from nmt.models.feed import FreeRunning, TeacherForcing
from nmt.translator.translator import Translator
from nmt.workflows.evaluate import feeds
from tests.workflows.runs import Command, in_process, lines_of, write_lines

TEST = ("--source", "test.de", "--reference", "test.en")
FEEDS = ("teacher_forcing", "free_running", "scheduled_sampling")
BOTH = "data.test=[{source: test.de, target: test.en}, {source: valid.de, target: valid.en}]"


@pytest.fixture
def evaluate(copied: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "evaluate")


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return package.load(trained / "run", precision="float32")


def sides(folder: str | Path = ".", part: str = "test") -> tuple[list[str], list[str]]:
    return lines_of(f"{folder}/{part}.de"), lines_of(f"{folder}/{part}.en")


def sacrebleu(hypotheses: Sequence[str], references: Sequence[str], lower: bool, tokenize: str) -> dict[str, float]:
    metrics = {"BLEU": BLEU(lowercase=lower, tokenize=tokenize), "chrF2": CHRF(lowercase=lower), "TER": TER()}
    return {name: metric.corpus_score(hypotheses, [references]).score for name, metric in metrics.items()}


def test_a_model_is_scored_by_its_translations_and_in_three_modes(evaluate: Command) -> None:
    tree = evaluate("run", *TEST, "--json").tree
    assert list(tree) == ["BLEU", "chrF2", "TER", *FEEDS, "exposure_bias"]
    assert all(list(tree[feed]) == ["perplexity", "token_accuracy", "tokens"] for feed in FEEDS)
    teacher, free = (tree[feed]["perplexity"] for feed in FEEDS[:2])
    assert teacher > 1
    assert tree["exposure_bias"] == pytest.approx(free / teacher)
    sources, references = sides()
    write_lines("hypothesis.en", hypotheses := [each.text for each in package.load("run").translate(sources)])
    expected = sacrebleu(hypotheses, references, False, "13a")
    assert {name: tree[name]["value"] for name in expected} == pytest.approx(expected, abs=1e-9)
    scored = evaluate("--hypothesis", "hypothesis.en", "--reference", "test.en").output
    assert scored.startswith("BLEU|nrefs:1|case:mixed")


def test_text_is_prepared_as_sacrebleu_does(evaluate: Command) -> None:
    """Case counts by default, and 13a does not cut at an apostrophe, where intl does."""
    hypotheses = ["The dog's ball", "A Man in a car .", "Two dogs run"]
    references = ["the Dog’s ball", "A man in a CAR.", "Two dogs run"]
    for name, lines in (("h", hypotheses), ("r", references)):
        write_lines(name, lines)
    figures = set()
    for lower, tokenize in ((False, "13a"), (True, "13a"), (False, "intl"), (True, "char")):
        options = [*(["--lowercase"] if lower else []), *(["--tokenize", tokenize] if tokenize != "13a" else [])]
        tree = evaluate("--hypothesis", "h", "--reference", "r", *options, "--json").tree
        expected = sacrebleu(hypotheses, references, lower, tokenize)
        assert {name: tree[name]["value"] for name in expected} == pytest.approx(expected, abs=1e-9)
        figures.add(tree["BLEU"]["value"])
    assert len(figures) == 4


def test_without_files_the_test_corpora_of_the_config_are_scored(evaluate: Command) -> None:
    message = "--source and --reference are missing, and the config has no data.test; give one or the other"
    assert evaluate("run").error == message
    by_config = evaluate("run", "--set", BOTH, "--json").tree
    assert list(by_config) == ["test.de + test.en", "valid.de + valid.en"]
    given = evaluate("run", "--source", "valid.de", "--reference", "valid.en", "--json").tree
    assert by_config["valid.de + valid.en"] == given


@pytest.mark.parametrize(
    ("pairs", "faulty", "why"),
    [("none.tsv", "drop", "none.tsv: no such file"), ("messy.tsv", "refuse", "messy.tsv: 1 of 42 rows are no pairs")],
)
def test_test_corpora_that_cannot_be_read_are_named_with_the_way_out(
    pairs: str, faulty: str, why: str, evaluate: Command
) -> None:
    Path("messy.tsv").write_text("eins\tone\nzwei\n" + "drei\tthree\n" * 40)
    error = evaluate("run", "--set", f"data.test={{pairs: {pairs}}}", "--set", f"data.faulty={faulty}").error
    assert error.startswith(why)
    assert error.endswith("(data.test of the model; --source and --reference name others)")


def test_by_length_each_bucket_is_scored_as_its_lines(evaluate: Command) -> None:
    sources, references = sides()
    texts = {"s": ["", *sources], "h": ["x", *reversed(references)], "r": ["one", *references]}
    for name, lines in texts.items():
        write_lines(name, lines)
    arguments = ("--source", "s", "--hypothesis", "h", "--reference", "r", "--by-length")
    buckets = evaluate(*arguments, "--length-edges", "3,5", "--json", "--plot", "a.png").tree["by_length"]
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    assert [(each["first_words"], each["last_words"]) for each in buckets] == [(0, 0), (1, 3), (4, 5), (6, None)]
    for each in buckets:
        last = 99 if each["last_words"] is None else each["last_words"]
        inside = [row for row, line in enumerate(texts["s"]) if each["first_words"] <= len(line.split()) <= last]
        assert each["sentences"] == len(inside)
        hypotheses, references = ([texts[name][row] for row in inside] for name in ("h", "r"))
        for score in scores(hypotheses, references, metrics=("bleu", "chrf")):
            assert each[score.name]["value"] == score.value
            assert each[score.name]["low"] <= score.value <= each[score.name]["high"]
    lines = evaluate(*arguments).output.splitlines()
    assert [line.split("|")[0] for line in lines[:4]] == ["BLEU", "chrF2", "TER", ""]
    assert [line.split()[0] for line in lines[4:]] == ["source", "0", "1-5", "6-10", "*"]
    assert sum(int(line.split()[1].rstrip("*")) for line in lines[5:8]) == 11


def test_by_length_the_models_translations_of_each_corpus_are_scored(evaluate: Command) -> None:
    arguments = ("--by-length", "--length-edges", "3", "--json", "--set", "search.beam=1", "--plot", "a.svg")
    tree = evaluate("run", "--set", BOTH, *arguments).tree
    assert b"<svg" in Path("a.svg").read_bytes()
    sources, references = sides(part="valid")
    hypotheses = [each.text for each in package.load("run", overrides=["search.beam=1"]).translate(sources)]
    expected = as_tree(by_length(sources, hypotheses, references, edges=(3,)))
    assert tree["valid.de + valid.en"]["by_length"] == expected
    assert sum(each["sentences"] for each in tree["test.de + test.en"]["by_length"]) == 10


SCORED = "--hypothesis test.en --reference test.en"
NO_MODEL = "--hypothesis scores a file without a model; leave out MODEL"
BY_LENGTH = "belongs to the scores by length; give --by-length as well"
RISING = "give rising whole numbers of at least 1, such as 5,10,20"
TOGETHER = "they must agree line by line"
MISTAKES = {
    "run --length-edges 5": f"--length-edges {BY_LENGTH}",
    "run --plot a.png": f"--plot {BY_LENGTH}",
    f"{SCORED} --by-length": "--by-length needs the length of each source; give --source beside --hypothesis",
    f"run {SCORED} --source test.de --by-length": f"{NO_MODEL}, or --hypothesis",
    f"{SCORED} --source test.de": f"{NO_MODEL} and --source, or --hypothesis",
    f"{SCORED} --beam 2": "--hypothesis needs no model; leave out --set, --device, --precision and search options",
    "run --by-length --length-edges 9,3": f"--length-edges 9,3: {RISING}",
    "run --by-length --plot a.jpg": "--plot a.jpg: a picture is a file that ends in .png or .svg; name it so",
    "run --by-length --plot no/a.png": "--plot no/a.png: cannot be written: folder no does not exist",
    f"{SCORED} --source train.de --by-length": f"train.de has 60 lines, but test.en has 10: {TOGETHER}",
    f"{SCORED} --tokenize moses": "--tokenize moses: is not a tokenizer for BLEU; choose one of 13a, char, flores101, "
    "flores200, intl, ja-mecab, ko-mecab, none, spBLEU-1K, spm, zh",
    "run --source test.de --reference train.en": f"test.de has 10 lines, but train.en has 60: {TOGETHER}",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_what_makes_no_sense_together(arguments: str, evaluate: Command) -> None:
    assert evaluate(*arguments.split()).error == MISTAKES[arguments]


def steps(
    translator: Translator, source: str, target: str, coins: Iterable[bool]
) -> Iterator[tuple[int, torch.Tensor]]:
    """Each gold token with the logits for it; after it the model reads it or its own guess, as the coin says."""
    model, tokenizers = translator.trained.model, translator.trained.tokenizers
    memory = model.encode(torch.tensor([[*tokenizers.source.encode(source), 3]]))
    state, token = model.start(memory), torch.tensor([2])
    for gold, is_gold in zip([*tokenizers.target.encode(target), 3], itertools.chain(coins, [True]), strict=False):
        step = model.step(token, memory, state)
        state = step.state
        yield gold, step.logits_NV[0]
        token = torch.tensor([gold if is_gold else int(step.logits_NV[0].argmax())])


@pytest.mark.parametrize("reads_gold", [True, False])
def test_perplexity_is_that_of_plain_loops(reads_gold: bool, translator: Translator, trained: Path) -> None:
    sources, targets = sides(trained)
    total, right, count = 0.0, 0, 0
    for source, target in zip(sources, targets, strict=True):
        for gold, logits_V in steps(translator, source, target, itertools.repeat(reads_gold)):
            total -= float(logits_V.log_softmax(-1)[gold])
            right += int(logits_V.argmax()) == gold
            count += 1
    assert count - right > 5  # else nothing is told apart from teacher forcing
    prediction = translator.predict(sources, targets, TeacherForcing() if reads_gold else FreeRunning())
    assert prediction.tokens == count
    assert prediction.loss == pytest.approx(total / count, rel=1e-4)
    assert prediction.accuracy == pytest.approx(100 * right / count)
    assert (prediction.loss == pytest.approx(translator.predict(sources, targets).loss, rel=1e-4)) == reads_gold


def test_scheduled_sampling_reads_gold_or_guess_and_draws_the_same_each_time(
    translator: Translator, trained: Path
) -> None:
    feed = feeds()["scheduled_sampling"]
    sources, targets = sides(trained)
    read = set()
    for source, target in zip(sources, (line.split()[0] for line in targets), strict=True):
        length = len(translator.trained.tokenizers.target.encode(target))
        losses = {}
        for coins in itertools.product([False, True], repeat=length):
            read_V = steps(translator, source, target, coins)
            losses[coins] = -sum(float(logits_V.log_softmax(-1)[gold]) for gold, logits_V in read_V)
        found = translator.predict([source], [target], feed)
        best = min(losses, key=lambda coins: abs(losses[coins] - found.loss * found.tokens))
        assert losses[best] == pytest.approx(found.loss * found.tokens, abs=1e-4)
        read.update(best)
    assert read == {False, True}
    state = torch.get_rng_state()
    first = translator.predict(sources, targets, feed)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(7)
    assert translator.predict(sources, targets, feed) == first
    assert len({translator.predict(sources, targets, each).loss for each in feeds().values()}) == 3
