"""`nmt align` by models: in one and in both directions, by attention and gradients, of words and of text, and the
comparison of methods, on tiny runs. The command line runs in this process."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nmt as package
from nmt.alignment.directions import join
from nmt.alignment.formats import Alignment, read_gold, read_jsonl, read_npz
from nmt.alignment.link_files import read_links
from nmt.core.errors import InputError
from nmt.data.words import text_words
from nmt.translator.both_directions import BothDirections
from nmt.translator.translator import Translator
from tests.workflows.runs import CONFIG, EXACT, Command, in_process, lines_of, train_in, write_lines, write_pairs

SOURCES = ["Hund und Katze.", "", "zwei Hund", "eins", " ", "grün Katze drei"]
TARGETS = ["dog and cat.", "x", " ", "one three", "", "green cat three"]
METHODS = ("attention", "shifted-attention", "gradient", "input-x-gradient")
GRADIENTS = METHODS[2:]


@pytest.fixture
def align(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `nmt align` in ``tmp_path``, where ``s`` and ``t`` are files of pairs."""
    monkeypatch.chdir(tmp_path)
    write_pairs(SOURCES, TARGETS)
    return in_process(capsys, "align")


@pytest.fixture(scope="session")
def without_attention(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like ``trained``, with a model without attention."""
    return train_in(tmp_path_factory.mktemp("without_attention"), CONFIG, "model.attention.score=none")


GIVEN = ("-s", "s", "-t", "t", *EXACT)
NO_ATTENTION = "has no attention (model.attention.score: none); use --method gradient"


@pytest.mark.parametrize(("name", "method"), [("grow-diag-final-and", "gradient"), ("soft-product", "attention")])
def test_every_format_has_what_both_models_find(
    trained: Path, reverse: Path, translator: Translator, align: Command, name: str, method: str
) -> None:
    both = (trained / "run", "--reverse", reverse, *GIVEN, "--method", method, "--symmetrize", name)
    lines = align(*both).output.splitlines()
    for format_ in ("jsonl", "npz", "png"):
        assert align(*both, "--format", format_, "-o", format_).output == ""
    assert len(list(Path("png").iterdir())) == len(SOURCES)
    directions = BothDirections(translator, package.load(reverse, precision="float32"), join(name))
    expected = directions.align(SOURCES, TARGETS, method=method)
    for line, *found, each in zip(lines, read_jsonl(Path("jsonl")), read_npz(Path("npz")), expected, strict=True):
        assert line == " ".join(f"{s}-{t}" for s, t in each.links)
        for one in found:
            assert (one.links, one.level, one.source_tokens) == (each.links, "word", each.source_words)
            np.testing.assert_allclose(one.weights_TS, each.weights_TS, atol=2e-6)


def test_gold_links_judge_the_joined_ones_and_settings_hold_for_both(
    trained: Path, reverse: Path, align: Command
) -> None:
    Path("gold").write_text("0-0 1-1 2-2\n\n\n0-0 0-1\n\n0-0 1-1 2-2\n")
    arguments = (trained / "run", "--reverse", reverse, *GIVEN, "--gold", "gold")
    _, out, err = align(*arguments, "--symmetrize", "union")
    predicted, gold = ([set(line.split()) for line in lines] for lines in (out.splitlines(), lines_of("gold")))
    a, s = sum(map(len, predicted)), sum(map(len, gold))
    right = sum(len(one & other) for one, other in zip(predicted, gold, strict=True))
    assert err.splitlines()[-1].startswith(f"AER {100 * (1 - 2 * right / (a + s)):.1f}  ")
    # With argmax every target word has one link by the forward model, every source word by the backward one: no word
    # of either side is without.
    _, out, _ = align(*arguments, "--symmetrize", "union", "--set", "alignment=argmax")
    for line, source, target in zip(out.splitlines(), SOURCES, TARGETS, strict=True):
        links = [link.split("-") for link in line.split()]
        if source.strip() and target.strip() and len(source.split()) > 1:
            assert {int(s) for s, _ in links} == set(range(len(source.split())))
            assert {int(t) for _, t in links} == set(range(len(target.split())))
    _, out, _ = align(*arguments, "--symmetrize", "soft-mean", "--threshold", "1")
    assert {link for line in out.splitlines() for link in line.split()} <= {"0-0"}


def test_models_that_cannot_be_joined_are_named(trained: Path, without_attention: Path, align: Command) -> None:
    run, other = trained / "run", without_attention / "run"
    assert "is of the same run as the forward model" in align(run, "--reverse", run / "best", *GIVEN).error
    arguments = (run, "--reverse", other, *GIVEN, "-o", "out")
    assert align(*arguments).error == f"{other}/best: {NO_ATTENTION}"
    assert not Path("out").exists()
    assert align(*arguments, "--method", "gradient")[0] == 0
    assert len(lines_of("out")) == len(SOURCES)


def same(one: Alignment, other: Alignment) -> None:
    assert (one.source_words, one.target_words, one.links) == (other.source_words, other.target_words, other.links)
    assert (one.source_tokens, one.target_tokens, one.level) == (other.source_tokens, other.target_tokens, other.level)
    np.testing.assert_allclose(one.weights_TS, other.weights_TS, atol=1e-6)


@pytest.mark.parametrize("method", ["attention", pytest.param("gradient", marks=pytest.mark.slow), "input-x-gradient"])
def test_every_format_holds_every_line(trained: Path, translator: Translator, align: Command, method: str) -> None:
    sources, targets = SOURCES[:5], TARGETS[:5]
    write_pairs(sources, targets)
    for level in ("word", "subword"):
        for format_ in ("pharaoh", "jsonl", "npz", "png"):
            arguments = ("--method", method, "--level", level, "--format", format_, "-o", format_)
            assert align(trained / "run", *GIVEN, *arguments).output == ""
        links = Path("pharaoh").read_text().split("\n")
        from_json, from_npz = list(read_jsonl(Path("jsonl"))), list(read_npz(Path("npz")))
        assert links.pop() == ""
        assert len(links) == len(from_json) == len(from_npz) == len(list(Path("png").iterdir())) == len(sources)
        expected = translator.align(sources, targets, method=method, level=level)
        assert [each.target_words for each in expected] == [tuple(target.split()) for target in targets]
        for place, alignment in enumerate(expected):
            same(from_json[place], alignment)
            same(from_npz[place], alignment)
            assert links[place] == " ".join(f"{s}-{t}" for s, t in alignment.links)
            assert alignment.links or not (sources[place].strip() and targets[place].strip())
        ends = {expected[0].source_tokens[-1], expected[0].target_tokens[-1]}
        assert (ends == {"</s>"}) == (level == "subword")
        by_attention = translator.align(sources, targets, level=level)
        assert (np.abs(expected[0].weights_TS - by_attention[0].weights_TS).max() > 0.01) == (method != "attention")
        np.testing.assert_allclose(expected[0].weights_TS.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("method", "option"), [("gradient", "--raw"), ("input-x-gradient", "--raw"), ("input-x-gradient", "--signed")]
)
def test_magnitudes_are_summed_over_the_subwords_and_leave_the_links(
    trained: Path, align: Command, method: str, option: str
) -> None:
    sources, targets = ["Hund und Katze.", "", "zwei Hund"], ["dog and cat.", "x", "one three two"]
    write_pairs(sources, targets)
    arguments = ("-s", "s", "-t", "t", "--method", method, *EXACT, "--format")
    found: dict[str, list[Alignment]] = {}
    for level in ("word", "subword"):
        assert align(trained / "run", *arguments, "jsonl", option, "--level", level, "-o", "out").code == 0
        found[level] = list(read_jsonl(Path("out")))
    assert align(trained / "run", *arguments, "jsonl", "-o", "out").code == 0
    tokenizers = package.load(trained / "run").trained.tokenizers
    found["relative"] = list(read_jsonl(Path("out")))
    for place, (words, pieces, relative) in enumerate(zip(*found.values(), strict=True)):
        assert words.links == pieces.links == relative.links
        assert words.weights_TS.shape == relative.weights_TS.shape
        if not sources[place]:
            assert not pieces.weights_TS.any()
            continue
        of_source, of_target = (
            [len(tokenizer.encode(word)) for word in line.split()]
            for tokenizer, line in ((tokenizers.source, sources[place]), (tokenizers.target, targets[place]))
        )
        if "." in sources[place]:  # the subword of punctuation at a word does not count
            continue
        columns = np.add.reduceat(pieces.weights_TS[:-1, :-1], np.cumsum([0, *of_source[:-1]]), axis=1)
        summed = np.add.reduceat(columns, np.cumsum([0, *of_target[:-1]]), axis=0)
        np.testing.assert_allclose(words.weights_TS, summed, atol=2e-5)
        assert (words.weights_TS.min() < 0) == (option == "--signed")
        assert not np.allclose(words.weights_TS.sum(axis=1), 1, atol=1e-3)
    for format_ in ("npz", "tsv", "svg", "html") if option == "--signed" else ():
        assert align(trained / "run", *arguments, format_, option, "-o", format_).output == ""
        if format_ == "html":
            assert "in per cent of the pair's largest" in Path("html").read_text(encoding="utf-8")


def ranks(row: np.ndarray) -> np.ndarray:
    """Computes the ranks of values that are all different."""
    return row.argsort().argsort()


@pytest.mark.parametrize("attention", [True, False])
def test_the_comparison_is_that_of_the_single_methods(
    trained: Path, without_attention: Path, align: Command, tmp_path: Path, attention: bool
) -> None:
    folder = trained if attention else without_attention
    lengths = [len(line.split()) for line in lines_of(folder / "test.de")]
    gold = tmp_path / "gold"
    write_lines(gold, (" ".join(f"{n}-{n}" for n in range(length)) for length in lengths))
    arguments = (folder / "run", "-s", folder / "test.de", "-t", folder / "test.en", "--gold", gold, *EXACT)
    report = align(*arguments, "--compare", "--json").tree
    methods = METHODS if attention else GRADIENTS
    assert (report["sentences"], tuple(report["methods"])) == (10, methods)
    found: dict[str, list[Alignment]] = {}
    for method in methods:
        single = align(*arguments, "--method", method, "--format", "jsonl", "-o", "out")
        found[method] = list(read_jsonl(Path("out")))
        score = report["methods"][method]
        printed = f"AER {100 * score['aer']:.1f}  precision {100 * score['precision']:.1f}  "
        assert single.stderr.splitlines()[-1].startswith(printed)
        assert score["predicted"] == sum(len(each.links) for each in found[method])
    pairs = [each["methods"] for each in report["agreement"]]
    assert pairs == [[one, other] for place, one in enumerate(methods) for other in methods[place + 1 :]]
    for each in report["agreement"]:
        rows = [
            np.corrcoef(ranks(row), ranks(other_row))[0, 1]
            for one, other in zip(*(found[method] for method in each["methods"]), strict=True)
            for row, other_row in zip(one.weights_TS, other.weights_TS, strict=True)
        ]
        assert each["target_words"] == len(rows)
        assert each["spearman"] == pytest.approx(np.mean(rows), abs=0.02)  # six decimals may swap two ranks
        assert -1 <= each["kendall"] <= 1
    lines = align(*arguments, "--compare").stdout.splitlines()
    first_columns = ["links", *methods, "", "rank correlation", *(" - ".join(pair) for pair in pairs)]
    first_columns += [
        "",
        "fall without a source word",
        *methods,
        *(["", "permuted", "attention", "", "effective", "attention"] if attention else []),
    ]
    assert [line.split("  ")[0] for line in lines] == first_columns
    assert (report["permuted"] is not None) == (report["effective"] is not None) == attention
    last = report["agreement"][-1]
    assert lines[first_columns.index(" - ".join(last["methods"]))].split()[-3:] == [
        f"{last['spearman']:.3f}",
        f"{last['kendall']:.3f}",
        str(last["target_words"]),
    ]
    assert lines[1].split()[1:3] == [
        f"{100 * report['methods'][methods[0]][rate]:.1f}" for rate in ("aer", "precision")
    ]


def test_the_comparison_without_gold_of_own_translations(trained: Path, align: Command, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("Hund und Katze.\n\neins\n")
    arguments = (trained / "run", "--source", "s", "--free-running", "--compare")
    report = align(*arguments, "--json").tree
    assert report["sentences"] == 3
    assert report["methods"] == dict.fromkeys(METHODS)
    assert len(report["agreement"]) == 6
    (tmp_path / "s").write_text("eins\n\n")  # one word has no order
    alone = align(*arguments, "--json").tree["agreement"][0]
    assert alone == {
        "methods": ["attention", "shifted-attention"],
        "spearman": None,
        "kendall": None,
        "target_words": 0,
    }
    lines = align(*arguments).stdout.splitlines()
    assert ["attention", "–", "–", "–", "0"] in [line.split() for line in lines]
    assert [line.split() for line in lines[:2]] == [
        ["rank", "correlation", "Spearman", "Kendall", "target", "words"],
        ["attention", "-", "shifted-attention", "–", "–", "0"],
    ]


def test_erasure_is_the_score_of_the_pair_without_the_word(
    trained: Path, translator: Translator, align: Command
) -> None:
    """The sources have two words, so that the word other than that of the highest weight is the remaining one."""
    sources, targets = ["zwei Hund", "Katze eins", "drei Hund", "", "grün"], ["dog cat", "one", "three dog.", "x", "y"]
    write_pairs(sources, targets)
    report = align(trained / "run", *GIVEN, "--compare", "--json").tree

    def probabilities(source: str, target: str) -> list[float]:
        log_p = [*translator.score(source, target).token_log_probs]
        pieces = [len(translator.trained.tokenizers.target.encode(word)) for word in target.split()]
        return [math.exp(sum(log_p.pop(0) for _ in range(count))) for count in pieces]

    for method in METHODS:
        highest, other = [], []
        for source, target in list(zip(sources, targets, strict=True))[:3]:
            whole, *parts = [probabilities(each, target) for each in (source, *reversed(source.split()))]
            for word, row in enumerate(translator.align(source, target, method=method).weights_TS):
                fall = [whole[word] - part[word] for part in parts]
                highest.append(fall[row.argmax()])
                other.append(fall[1 - row.argmax()])
        found = report["erasure"][method]
        assert found["target_words"] == len(highest) == 5
        assert found["highest"] == pytest.approx(np.median(highest), abs=1e-6)
        assert found["other"] == pytest.approx(np.median(other), abs=1e-6)
        assert found["larger"] == pytest.approx(np.mean(np.array(highest) > other))
    assert 0 < report["permuted"]["median_distance"] < 1
    assert report["effective"]["lowest_share"] == pytest.approx(
        1.0
    )  # two words have fewer subwords than a value numbers


def test_a_model_without_attention_names_the_methods_it_has(without_attention: Path, align: Command) -> None:
    run = without_attention / "run"
    for format_ in ("pharaoh", "png"):
        assert align(run, *GIVEN, "--format", format_, "-o", "out").error == f"{run}/best: {NO_ATTENTION}"
        assert not Path("out").exists()
    assert align(run, *GIVEN, "--method", "gradient").output.count("\n") == len(SOURCES)
    translator = package.load(run)
    assert translator.aligner.methods == GRADIENTS
    with pytest.raises(InputError, match="has no attention"):
        translator.align(["eins"], ["one"])


def test_own_translations_are_aligned_as_they_are(trained: Path, translator: Translator, align: Command) -> None:
    assert align(trained / "run", "-s", "s", "--free-running", "--format", "jsonl", *EXACT, "-o", "out").code == 0
    own = translator.translate(SOURCES)
    assert [each.target_words for each in read_jsonl(Path("out"))] == [tuple(each.text.split()) for each in own]


def test_the_comparison_keeps_the_errors_of_align(trained: Path, align: Command, tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-99\n" * 10)
    (tmp_path / "empty").write_text("")
    arguments = (trained / "run", "--compare", "--source")
    test = trained / "test.de"
    assert "lines, but" in align(*arguments, test, "--target", trained / "train.en").error
    assert align(*arguments, test, "-t", trained / "test.en", "--gold", "gold").error.startswith("gold:1: link '0-99'")
    assert align(*arguments, test, "--target", "no").error == "no: no such file"
    assert align(*arguments, "empty").error == "empty: holds no line to align"


TEXT = (
    ["„Hund  und Katze.“", "", "zwei\u00a0Hund,eins", "eins!", " \u200b ", "日本語 ﬁn"],
    ["“dog and cat.”", "x", " ", "one three…", "", "green 日本 half-½"],
)


@pytest.mark.parametrize("joined", [False, True], ids=["one", "both"])
def test_every_format_knows_the_words_of_the_text(trained: Path, reverse: Path, align: Command, joined: bool) -> None:
    sources, targets = TEXT
    write_pairs(sources, targets)
    given = (trained / "run", *GIVEN, "--text", *(("--reverse", reverse) if joined else ()))
    for format_ in ("pharaoh", "gold", "tsv", "jsonl", "npz", *(() if joined else ("png",))):
        assert align(*given, "--format", format_, "-o", format_).output == ""
    found = list(read_jsonl(Path("jsonl")))
    assert len(found) == len(sources)
    assert joined or len(list(Path("png").iterdir())) == len(sources)
    for each, source, target in zip(found, sources, targets, strict=True):
        for line, words, spans in (
            (source, each.source_words, each.source_spans),
            (target, each.target_words, each.target_spans),
        ):
            assert spans == tuple(text_words(line))
            assert words == tuple(line[begin:end] for begin, end in spans)
        if each.source_words and each.target_words:
            assert each.links
        if not joined:
            np.testing.assert_allclose(each.weights_TS.sum(axis=1), 1 if each.source_words else 0, atol=2e-5)
    assert found[0].source_words == ("„", "Hund", "und", "Katze", ".", "“")
    for name in ("pharaoh", "gold", "tsv", "npz"):
        assert [each.links for each in read_links(Path(name))] == [each.links for each in found]
    for each, archived in zip(found, read_npz(Path("npz")), strict=True):
        np.testing.assert_allclose(each.weights_TS, archived.weights_TS, atol=2e-6)
    sure = [gold.sure for gold in read_gold(Path("gold"))]
    assert sure == [each.sure for each in found]
    if joined:
        forward = package.load(trained / "run", precision="float32").align(sources, targets, text=True)
        backward = package.load(reverse, precision="float32").align(targets, sources, text=True)
        for each, one, other in zip(found, forward, backward, strict=True):
            assert each.sure == set(one.links) & {(s, t) for t, s in other.links} & set(each.links)
        assert sure != [set(each.links) for each in found]
    else:
        assert sure == [set(each.links) for each in found]


def test_own_translations_and_gold_links_count_these_words(trained: Path, align: Command) -> None:
    sources, targets = TEXT
    write_pairs(sources, targets)
    assert align(trained / "run", "-s", "s", "--text", "--format", "tsv", *EXACT, "-o", "own")[0] == 0
    assert len(list(read_links(Path("own")))) == len(sources)
    # The first source has 6 words so, but 3 by white space.
    Path("gold").write_text("6-6\n\n\n1-1\n\n1-1\n")
    arguments = (trained / "run", *GIVEN, "--gold", "gold", "--gold-base", "1")
    code, _, err = align(*arguments, "--text")
    assert (code, err.splitlines()[-1][:4]) == (0, "AER ")
    assert align(*arguments).error == (
        "gold:1: link '6-6' points at source word 6, but that sentence has 3 words: write the source index first, and "
        "count from 1"
    )
    out = align(trained / "run", *GIVEN, "--text", "--compare").output
    words = sum(len(text_words(target)) for source, target in zip(sources, targets, strict=True) if source.strip())
    correlations = out.partition("rank correlation")[2].partition("\n\n")[0]
    assert int(correlations.splitlines()[-1].split()[-1]) <= words


# ------------------------------------------------------------------------------------------------ the choice of heads

PATTERNS = ("*", "layer1.*", "layer2.*", "layer1.head1", "layer1.head2", "layer2.head1", "layer2.head2")


@pytest.fixture
def choose(trained: Path, reverse: Path, align: Command) -> Command:
    """Aligns the valid corpus by the Transformer; its word by word translations are the file ``gold``."""
    sources = lines_of(trained / "valid.en")
    write_pairs(sources, lines_of(trained / "valid.de"))
    write_lines("gold", (" ".join(f"{place}-{place}" for place in range(len(line.split()))) for line in sources))
    return lambda *options: align(reverse, *GIVEN, *options)


def test_heads_of_the_least_error_rate_are_chosen(choose: Command) -> None:
    links, said = choose("--choose-heads", "gold", "--gold", "gold")[1:]
    (chosen,) = re.findall(r"heads: (\S+) of", said)
    rates = {}
    for pattern in PATTERNS:
        by_pattern, score = choose("--heads", pattern, "--gold", "gold")[1:]
        rates[pattern] = float(score.split("AER ")[1].split()[0])
        if pattern == chosen:
            assert by_pattern == links
    assert rates[chosen] == min(rates.values()) < max(rates.values())


def test_gold_of_the_first_pairs_chooses_on_these(choose: Command) -> None:
    write_lines("short", lines_of("gold")[:2])
    said = choose("--choose-heads", "gold", "--gold", "short").stderr
    ((rate, pairs),) = re.findall(r"heads: .* AER ([\d.]+) % on (\d+) pairs", said)
    assert pairs == "2"
    assert f"AER {rate} " in said.splitlines()[-1], "the rate of the same two pairs"


def test_heads_of_the_least_entropy_are_chosen(choose: Command, reverse: Path) -> None:
    said = choose("--choose-heads", "entropy").stderr
    model = package.load(reverse, precision="float32")
    spreads: dict[str, float] = {}
    for pattern in PATTERNS:
        total, count = 0.0, 0
        for alignment in replace(model, heads=pattern).align(lines_of("s"), lines_of("t"), level="subword"):
            for row in np.asarray(alignment.weights_TS)[:-1]:
                shared = row[:-1] + row[-1] / (len(row) - 1)
                total -= sum(weight * np.log(weight) for weight in shared) / np.log(len(shared))
                count += 1
        spreads[pattern] = total / count
    best = min(spreads, key=lambda pattern: spreads[pattern])
    assert f"heads: {best} of" in said
    assert f"uncertainty {100 * spreads[best]:.1f} %" in said
    assert len({round(value, 6) for value in spreads.values()}) == len(PATTERNS)


def test_both_models_choose_for_themselves(choose: Command, align: Command, trained: Path, reverse: Path) -> None:
    """Each by the gold links of its own direction."""
    for name, link in (("shifted", "{0}-{1}"), ("turned", "{1}-{0}")):
        lines = (range(len(line.split())) for line in lines_of("gold"))
        write_lines(name, (" ".join(link.format(place, max(place - 1, 0)) for place in line) for line in lines))
    said = choose("--reverse", trained / "run", "--choose-heads", "gold", "--gold", "shifted").stderr
    (one, _), (other, rate) = re.findall(r"heads: \S+ of (\S+)/best, AER (\S+) %", said)
    assert (one, other) == (str(reverse), f"{trained}/run")
    alone = align(trained / "run", "-s", "t", "-t", "s", *EXACT, "--gold", "turned").stderr
    assert f"AER {rate} " in alone


def test_the_words_of_tokenised_text_are_erased_as_they_are_aligned(
    trained: Path, align: Command, tmp_path: Path
) -> None:
    """A mark that stands apart has no piece for the space before it, as it would have in ordinary text."""
    write_pairs(["zwei Hund .", "eins ."], ["two dog .", "one ."])
    report = align(trained / "run", *GIVEN, "--compare", "--json").tree
    model = package.load(trained / "run", precision="float32").trained
    target = model.tokenizers.target
    assert len(target.encode_tokens("two dog .").ids) < len(target.encode("two dog ."))
    assert report["erasure"]["attention"]["target_words"] == 5
