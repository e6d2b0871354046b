"""The confidence of translations: its parts beside plain loops and PyTorch, and its commands with a small model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

import nmt
from nmt.attention import multihead
from nmt.core.errors import InputError
from nmt.data.number_words import NEGATION
from nmt.data.words import text_words
from nmt.extras.trust import calibrate, calibration, confidence
from nmt.extras.trust.checks import one_sided, repetition
from nmt.extras.trust.damage import KINDS
from nmt.extras.trust.logistic import RIDGE, learn, sigmoid
from nmt.extras.trust.risk_coverage import calibration_error, risk_coverage
from nmt.extras.trust.signals import NEAR, by_word, in_context
from nmt.nn import feed_forward
from nmt.translator.loading import load_trained
from nmt.translator.translation import Translation
from tests.extras.pages.samples import Page
from tests.workflows.runs import EXACT, TEXT, TRANSFORMER, call, lines_of, place, translated

REFERENCE = "Two men in green shirts sit on a bench and do not talk to 3 women."
OTHER = "A black dog with a red ball runs over the field."


def words_of(text: str) -> list[str]:
    return [text[begin:end] for begin, end in text_words(text)]


def test_a_regression_is_where_the_gradient_of_its_loss_is_0() -> None:
    random = np.random.default_rng(1)
    x_NF = random.normal(size=(200, 3)) * [1, 5, 0.1] + [0, 3, 1]
    label_N = (x_NF @ [1, -0.2, 4] - 3 + random.normal(size=200) > 0).astype(float)
    model = learn(x_NF, label_N)
    weight_F = torch.tensor(model.weight_F, requires_grad=True)
    scaled_NF = torch.tensor((x_NF - x_NF.mean(0)) / x_NF.std(0))
    odds_N = scaled_NF @ weight_F + model.bias
    loss = torch.nn.functional.binary_cross_entropy_with_logits(odds_N, torch.tensor(label_N), reduction="sum")
    (loss + RIDGE / 2 * weight_F.square().sum()).backward()  # type: ignore[no-untyped-call]
    assert weight_F.grad is not None
    assert weight_F.grad.abs().max() < 1e-2
    assert np.allclose(model.log_odds(x_NF), odds_N.detach().numpy(), atol=1e-3)
    assert (sigmoid(np.array([-1e9, 0, 1e9])) == sigmoid(np.array([-30, 0, 30]))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_damaged_is_known(kind: str) -> None:
    for seed in range(50):
        damage = KINDS[kind](REFERENCE, OTHER, np.random.default_rng(seed))
        assert damage is not None
        before, after = words_of(REFERENCE), words_of(damage.text)
        kept_before = [word for index, word in enumerate(before) if index not in damage.dropped]
        kept_after = [word for index, word in enumerate(after) if index not in damage.wrong]
        if kind in ("substituted", "number"):
            (place,) = damage.wrong
            assert after[place] != before[place]
            del kept_before[place]
        if kind == "negation":
            kept_before.remove("not")
        if kind != "another":
            assert kept_after == kept_before
        assert damage.text not in (REFERENCE, "")
    assert kind == "another" or KINDS[kind]("Yes.", OTHER, np.random.default_rng(1)) is None


@pytest.mark.parametrize(
    ("text", "damaged"),
    [
        ("I can't go.", "I can go."),
        ("Don't say no.", "Do say no."),
        ("Nobody came", "came"),
        ("He was in another town.", None),
    ],
)
def test_a_lost_negation(text: str, damaged: str | None) -> None:
    damage = KINDS["negation"](text, OTHER, np.random.default_rng(1))
    assert (damage and damage.text) == damaged


def test_words_that_edits_leave_unchanged() -> None:
    def right(hypothesis: str, reference: str) -> str:
        return "".join(str(int(x)) for x in calibrate.unchanged_words(words_of(hypothesis), reference))

    assert right("A dog runs on the green grass", "a big dog runs on grass") == "1111001"
    assert right("a b c", "x") == "000"
    assert right("the same text.", "The same text.") == "1111"
    random = np.random.default_rng(1)
    for _ in range(100):  # the fewest edits, by the textbook's table
        one, other = (random.integers(0, 4, random.integers(1, 8)).astype(str).tolist() for _ in range(2))
        table = np.add.outer(np.arange(len(one) + 1), np.arange(len(other) + 1))
        for i, x in enumerate(one, 1):
            for j, y in enumerate(other, 1):
                table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (x != y))
        kept = int(calibrate.unchanged_words(one, " ".join(other)).sum())
        assert max(len(one), len(other)) - kept <= table[-1, -1] <= len(one) + len(other) - 2 * kept


def test_values_of_pieces_by_word() -> None:
    value_PF = np.random.default_rng(1).normal(size=(6, 2))
    word_of_piece = [0, 0, 1, 3, 3, 3]  # word 2 has no piece
    least, mean, count = by_word(value_PF, word_of_piece, 4)
    for word, pieces in {0: [0, 1], 1: [2], 2: [3], 3: [3, 4, 5]}.items():
        assert np.allclose(least[word], value_PF[pieces].min(axis=0))
        assert np.allclose(mean[word], value_PF[pieces].mean(axis=0))
        assert count[word] == len(pieces)


def test_features_of_words_in_context() -> None:
    random = np.random.default_rng(1)
    for words, others in ((1, 1), (3, 12), (12, 1)):
        value_IF, other_JF = random.normal(size=(words, 3)), random.normal(size=(others, 2))
        for index, row in enumerate(in_context(value_IF, other_JF)):
            before, after = (value_IF[x] if 0 <= x < words else np.zeros(3) for x in (index - 1, index + 1))
            near = np.mean([value_IF[x] for x in range(words) if abs(x - index) <= NEAR], axis=0)
            expected = [value_IF[index], before, after, near, value_IF.mean(axis=0), other_JF.mean(axis=0)]
            assert np.allclose(row, np.concatenate(expected))


def test_numbers_negations_and_repetitions() -> None:
    def numbers(source: str, target: str, languages: tuple[str, ...] = ("de", "en")) -> tuple[list[str], list[str]]:
        return one_sided(words_of(source), words_of(target), languages)

    assert numbers("Zwei von 1.000 Hunden", "two of 1,000 dogs") == ([], [])
    assert numbers("zwei Hunde", "Three dogs") == (["2"], ["3"])
    assert numbers("zwei Hunde", "three dogs", ()) == numbers("zwei", "three", ("de", "xx")) == ([], [])
    assert numbers("am 3. Mai 1999", "on 3 May") == (["1999"], [])
    assert numbers("die beiden kamen dreimal um halb", "the two came three times at 30 past") == ([], [])
    assert numbers("um drei", "at two", ("es", "en")) == ([], ["2"])
    assert numbers("Es sind nicht 17,5 kg", "it isn’t 17.5 kg") == numbers("ohne Hut", "no hat") == ([], [])
    assert numbers("Ich sehe keinen Hund.", "I see a dog.") == ([NEGATION], [])
    assert numbers("Das ist gut.", "That is never good.") == ([], [NEGATION])
    assert numbers("No veo nada.", "I see nothing.", ("es", "en")) == ([], [])
    assert numbers("عام ١٤٩٢", "in 1492", ("ar", "en")) == numbers("١٬٢٣٤٫٥", "1,234.5", ("ar", "en")) == ([], [])
    assert repetition(words_of("x y z"), words_of("a red dog and a red cat")) == (4, 5)
    assert repetition(words_of("x y z x y"), words_of("a red dog and a red cat")) is None
    assert repetition(words_of("x"), words_of("no, no, no, no")) is None
    assert repetition(words_of("his dog and his cat"), words_of("他的狗和他的猫")) is None


def test_quality_against_the_accepted_share() -> None:
    class Known:
        reasons = ()

        def __init__(self, right: float) -> None:
            self.right = right

        def tree(self) -> dict[str, float]:
            return {}

    texts = ["ein guter Satz", "zzz"] * 10
    confidences = [0.9, 0.2] * 10
    translations = [Translation(x, 0, 0, confidence=Known(p)) for x, p in zip(texts, confidences, strict=True)]
    figures = risk_coverage(translations, ["ein guter Satz"] * 20)
    assert [round(each.share, 2) for each in figures.accepted] == [round(x / 10, 2) for x in range(1, 11)]
    assert [each.right for each in figures.accepted[:5]] == [1.0] * 5
    assert figures.accepted[-1].right == 0.5
    assert figures.calibration_error == pytest.approx((0.1 + 0.2) / 2)
    assert calibration_error(np.array([0.25] * 40), np.arange(40) % 4 == 0) < 0.11


def is_right_if_better_than_half(folder: Path, patch: pytest.MonkeyPatch) -> None:
    own = translated(folder, text=(folder / "valid.de").read_bytes()).decode().splitlines()
    chrf = calibrate.sentence_chrf(own, lines_of(folder / "valid.en"))
    patch.setattr(calibrate, "RIGHT", float(np.median(chrf)) + 1e-6)
    patch.setattr(calibrate, "MIN_PAIRS", 1)


@pytest.fixture(scope="module", params=["rnn", "transformer"])
def calibrated(request: pytest.FixtureRequest, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that is calibrated, as if half of its poor translations were right."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "rnn":
        shutil.copytree(trained, folder, dirs_exist_ok=True, symlinks=True)
    else:
        with pytest.MonkeyPatch.context() as patch:  # translations differ if residual branches matter from the start
            for module in (feed_forward, multihead):
                patch.setattr(module, "BRANCH", 1.0)
            assert call(place(folder, TRANSFORMER), "train", "config.yaml", *EXACT).code == 0
    with pytest.MonkeyPatch.context() as patch:
        is_right_if_better_than_half(folder, patch)
        done = call(folder, "calibrate", "run", *EXACT)
        assert done.stderr.endswith("run --confidence\n")
        assert done.output == ""
        (file := folder / "run" / "confidence.json").rename(folder / "expected")
        assert call(folder, "calibrate", "run", "valid.de", "valid.en", *EXACT).code == 0
        assert file.read_bytes() == (folder / "expected").read_bytes()
    return folder


def test_training_ends_with_it_if_there_is_time(
    calibrated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(calibrated, tmp_path, dirs_exist_ok=True, symlinks=True)
    path = tmp_path / "run" / "confidence.json"
    expected = path.read_bytes()
    path.unlink()
    train = ("train", "config.yaml", "--precision", "float32")
    assert "--confidence" not in call(tmp_path, *train).stderr
    assert not path.exists()
    monkeypatch.setattr(calibrate, "SHARE_OF_TRAINING", 1e6)
    assert "--confidence" not in call(tmp_path, *train).stderr  # too few of its translations are right
    is_right_if_better_than_half(tmp_path, monkeypatch)
    assert call(tmp_path, *train).stderr.endswith("confidence nmt translate run --confidence\n")
    assert path.read_bytes() == expected
    assert "--confidence" not in call(tmp_path, *train).stderr  # it is calibrated already
    path.unlink()
    for error in (InputError("valid.de: no such file"), RuntimeError("DefaultCPUAllocator: can't allocate memory")):
        monkeypatch.setattr(calibrate, "_examples", Mock(side_effect=error))
        done = call(tmp_path, *train)
        assert (done.code, "--confidence" in done.stderr) == (0, False)


def test_every_format_tells_the_same_confidence(calibrated: Path) -> None:
    plain = translated(calibrated).decode().splitlines()
    text = [line.split("\t") for line in translated(calibrated, "--confidence").decode().splitlines()]
    tsv = [x.split("\t") for x in translated(calibrated, "--confidence", "--format", "tsv").decode().splitlines()]
    trees = [json.loads(x) for x in translated(calibrated, "--confidence", "--format", "jsonl").decode().splitlines()]
    best = [tree["translations"][0] for tree in trees]
    assert plain == [x[1] for x in text] == [x[3] for x in tsv] == [x["text"] for x in best]
    assert [x[0] for x in text] == [x[4] for x in tsv]
    assert text[1] == ["", ""]
    assert best[1]["confidence"] is None
    for cell, row, tree, source in zip(text, tsv, best, TEXT.decode().splitlines(), strict=True):
        if source:
            confidence = tree["confidence"]
            assert float(cell[0]) == pytest.approx(confidence["right"], abs=1e-4)
            assert [word for word, *_ in confidence["source_words"]] == source.split()
            assert [word for word, *_ in confidence["words"]] == words_of(tree["text"])
            assert row[5] == "; ".join(confidence["reasons"])
    (calibrated / "t.de").write_bytes(TEXT)
    (calibrated / "t.en").write_text("".join(f"{x}\n" for x in plain), encoding="utf-8")
    score = ("score", "run", "-s", "t.de", "-t", "t.en", "--confidence", *EXACT)
    scored = [json.loads(x) for x in call(calibrated, *score, "--format", "jsonl").output.splitlines()]
    for one, other in zip(scored, best, strict=True):
        if other["text"]:  # the batches differ, and so does rounding
            assert one["confidence"]["right"] == pytest.approx(other["confidence"]["right"], abs=2e-3)
    assert [x.count("\t") for x in call(calibrated, *score).output.splitlines()] == [1] * len(plain)


def test_a_source_in_another_language_is_a_reason(calibrated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{lines_of(calibrated / 'train.de')[0]}\nthe quick brown fox jumps\n".encode()
    reason = "the source may be in another language"
    monkeypatch.setattr(confidence, "IMPROBABLE", 1.1)
    own, other = translated(calibrated, "--confidence", "--format", "tsv", text=text).decode().splitlines()
    assert reason not in own
    assert other.split("\t")[5].startswith(reason)
    monkeypatch.setattr(confidence, "IMPROBABLE", 0.0)
    assert reason not in translated(calibrated, "--confidence", "--format", "tsv", text=text).decode()


def test_a_model_is_handed_on_with_its_confidence(calibrated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its corpus, it can be calibrated on other pairs."""
    given = calibrated / "given"
    assert call(calibrated, "export", "run", "--to", "nmt", "--output", "given").code == 0
    assert (given / "confidence.json").read_bytes() == (calibrated / "run" / "confidence.json").read_bytes()
    expected = translated(calibrated, "--confidence").decode()
    assert call(calibrated, "translate", "given", "--confidence", *EXACT, stdin=TEXT).stdout == expected
    refused = call(calibrated, "calibrate", "given", *EXACT).error
    assert "no prepared corpus" in refused
    assert "name pairs" in refused
    monkeypatch.setattr(calibrate, "MIN_PAIRS", 0)
    (given / "confidence.json").unlink()
    assert call(calibrated, "calibrate", "given", "valid.de", "valid.en", *EXACT).code == 0
    assert (given / "confidence.json").exists()


def test_the_report_has_the_confidence_of_its_translations(calibrated: Path, tmp_path: Path) -> None:
    def shown(folder: Path) -> list[Any]:
        (pairs,) = Page((folder / "run" / "report.html").read_text(encoding="utf-8")).data("pairs")
        return [pair[4] for pair in pairs]

    assert call(calibrated, "report", "run", "--samples", "6", *EXACT).stderr.count("\n") == 3
    sources = (calibrated / "valid.de").read_bytes()
    lines = translated(calibrated, "--confidence", "--format", "jsonl", text=sources).splitlines()
    own = [json.loads(line)["translations"][0]["confidence"] for line in lines]
    found = shown(calibrated)
    assert len(found) == 6
    assert [each["confidence"] for each in found] == [own[int(each["title"]) - 1] for each in found]
    p = [each["confidence"]["right"] for each in found]
    assert p == sorted(p)

    shutil.copytree(calibrated, tmp_path, dirs_exist_ok=True, symlinks=True)
    path = tmp_path / "run" / "confidence.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"weights": "others"}), encoding="utf-8")
    done = call(tmp_path, "report", "run", "--samples", "6", *EXACT)
    assert "run: translations are shown without confidence: " in done.stderr
    assert "other weights" in done.stderr
    assert [each["confidence"] for each in shown(tmp_path)] == [None] * 6


def test_the_page_of_alignments_has_the_confidence_of_its_pairs(calibrated: Path) -> None:
    sources, targets = lines_of(calibrated / "test.de"), lines_of(calibrated / "test.en")
    sources[1], targets[2] = "42", ""
    (calibrated / "p.de").write_text("".join(f"{x}\n" for x in sources), encoding="utf-8")
    (calibrated / "p.en").write_text("".join(f"{x}\n" for x in targets), encoding="utf-8")
    pairs = ("-s", "p.de", "-t", "p.en", "--confidence", *EXACT)

    def shown(*options: str) -> list[list[Any]]:
        call(calibrated, "align", "run", *options, "--format", "html", "-o", "page.html")
        (found,) = Page((calibrated / "page.html").read_text(encoding="utf-8")).data("pairs")
        return list(found)

    found = shown(*pairs)
    scored = [json.loads(x) for x in call(calibrated, "score", "run", *pairs, "--format", "jsonl").output.splitlines()]
    assert [pair[4]["confidence"] for pair in found if len(pair) > 4] == [
        tree["confidence"] for tree in scored if "confidence" in tree
    ]
    assert [len(pair) for pair in found[:3]] == [5, 4, 5]
    assert [pair[:4] for pair in shown(*pairs[:4], *EXACT)] == [pair[:4] for pair in found]
    shutil.copytree(calibrated / "run", calibrated / "other", ignore=lambda *_: ["confidence.json"], symlinks=True)
    assert [pair[4:] for pair in shown(*pairs, "--reverse", "other")] == [pair[4:] for pair in found]
    own = [json.loads(x) for x in translated(calibrated, "--confidence", "--format", "jsonl").splitlines()]
    (calibrated / "p.de").write_bytes(TEXT)
    for pair, line in zip(shown("-s", "p.de", "--free-running", "--confidence", *EXACT), own, strict=True):
        expected = line["translations"][0]["confidence"]
        assert len(pair) == (4 if expected is None else 5)
        if expected is not None:
            assert pair[4]["confidence"]["right"] == pytest.approx(expected["right"], abs=2e-3)


def test_tokenised_pairs_are_judged_as_ordinary_ones(calibrated: Path) -> None:
    translator = nmt.load_translator(calibrated / "run", precision="float32", confidence=True)
    assert translator.estimator is not None
    ordinary, tokenised = (
        translator.estimator.of_pairs(translator.trained, [f"zwei Hunde{mark}"], [f"two dogs{mark}"])
        for mark in (".", " .")
    )
    assert ordinary == tokenised


def test_augmentation_leaves_doubtful_translations_out(calibrated: Path) -> None:
    lines = lines_of(calibrated / "train.en")[:30]
    text = "".join(f"{line}\n" for line in dict.fromkeys(lines)).encode()
    (calibrated / "mono.en").write_bytes(text)
    trees = [json.loads(x) for x in translated(calibrated, "--confidence", "--format", "jsonl", text=text).splitlines()]
    found = [(tree["source"], tree["translations"][0]["confidence"]["right"]) for tree in trees]
    p = sorted({p for _, p in found})
    gap = max(range(1, len(p)), key=lambda place: p[place] - p[place - 1])
    least = (p[gap] + p[gap - 1]) / 2
    options = (
        "--target-text",
        "mono.en",
        "--reverse",
        "run",
        "--precision",
        "float32",
        "-o",
        "made",
        "--device",
        "cpu",
    )
    done = call(calibrated, "augment", "config.yaml", *options, "--min-confidence", least)
    expected = [line for line, p in found if p >= least]
    assert lines_of(calibrated / "made" / "pairs" / "back-translation.en") == expected
    assert (
        f"{len(expected)} pairs, {len(found) - len(expected)} with less than --min-confidence left out" in done.stderr
    )


def test_rejected_lines(calibrated: Path) -> None:
    plain, sources = translated(calibrated).decode().splitlines(), TEXT.decode().splitlines()
    p = [float(x.split("\t")[0] or 2) for x in translated(calibrated, "--confidence").decode().splitlines()]
    limit = f"{max(x for x in p if x <= 1):.4f}"
    rejected = [x < float(limit) - 1e-4 for x in p]
    marked = translated(calibrated, "--reject-below", limit).decode().splitlines()
    left = translated(calibrated, "--reject-below", limit, "--rejected", "source").decode().splitlines()
    for one, is_rejected, mark, source, text in zip(plain, rejected, marked, left, sources, strict=True):
        assert mark in (f"[?] {one}", one)
        assert source in (text, one)
        if is_rejected:
            assert (mark, source) == (f"[?] {one}", text)
    assert translated(calibrated, "--reject-below", "0").decode().splitlines() == plain
    odd = "ein\u2028Hund\x85mit\rKatze\n"
    left = translated(calibrated, "--reject-below", "1", "--rejected", "source", text=odd.encode()).decode()
    assert left == "ein Hund mit Katze\n"
    trees = [json.loads(x) for x in translated(calibrated, "--reject-below", "1", "--format", "jsonl").splitlines()]
    confidences = [tree["translations"][0]["confidence"] for tree in trees]
    assert [x is not None and x["rejected"] for x in confidences] == [bool(x) for x in sources]


def test_the_most_confident_of_several(calibrated: Path) -> None:
    def cells(*options: str) -> list[list[str]]:
        output = translated(calibrated, "--confidence", "--beam", "9", *options).decode()
        return [line.split("\t") for line in output.splitlines()]

    candidates: dict[str, list[list[str]]] = {}
    for row in cells("--n-best", "9", "--format", "tsv"):
        candidates.setdefault(row[0], []).append(row)
    chosen = list(zip(cells("--choose-from", "9"), candidates.values(), strict=True))
    for (p, text), of_line in chosen:
        assert float(p or 0) == max(float(row[4] or 0) for row in of_line)
        assert text in [row[3] for row in of_line]
    assert any(text != of_line[0][3] for (_, text), of_line in chosen)
    for option in ("--n-best", "--top-k"):
        assert f"leave out {option}" in call(calibrated, "translate", "run", "--choose-from", "2", option, "2").error
    more = call(calibrated, "translate", "run", "--choose-from", "9").error
    assert more == "--choose-from 9: 9 translations need as many beams, not 5; add --beam 9"


def test_figures_of_evaluate(calibrated: Path) -> None:
    files = ("--source", "test.de", "--reference", "test.en")
    figures = call(calibrated, "evaluate", "run", *files, "--risk-coverage", "--json", *EXACT).tree["risk_coverage"]
    shares = [each["share"] for each in figures["accepted"]]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert 0 <= figures["calibration_error"] <= 1
    table = call(calibrated, "evaluate", "run", *files, "--risk-coverage", *EXACT).output
    assert "accepted confidence   chrF  right" in table


def test_what_has_no_letters_has_no_confidence(calibrated: Path, tmp_path: Path) -> None:
    lines = calibrated / "letterless"
    lines.write_text("42\n\n- 7\n", encoding="utf-8")
    scored = call(calibrated, "score", "run", "-s", lines, "-t", lines, "--confidence", *EXACT).output
    assert [line.split("\t")[1] for line in scored.splitlines()] == ["", "", ""]
    files = ("--source", lines, "--reference", lines)
    done = call(calibrated, "evaluate", "run", *files, "--risk-coverage", *EXACT)
    assert done.error.startswith("--risk-coverage: no translation has a confidence")


def test_refusals(calibrated: Path, trained: Path) -> None:
    def refused(*options: str, folder: Path = calibrated) -> str:
        return call(folder, "translate", "run", *EXACT, *options, stdin=TEXT)._replace(stdout="").error

    assert "is not calibrated; make it with: nmt calibrate" in refused("--confidence", folder=trained)
    assert "of 10 translations 0" in call(trained, "calibrate", "run", *EXACT).error
    assert "leave out --ensemble" in refused("--confidence", "--ensemble", "run")
    assert "--engine ctranslate2 has no signals" in refused("--reject-below", "0.5", "--engine", "ctranslate2")
    assert refused("--rejected", "source").startswith("--rejected: needs a probability")
    for value in ("-0.1", "1.1", "x", "nan"):
        assert "--reject-below" in refused("--reject-below", value)
    align = ("align", "run", "-s", "test.de", "-t", "test.en", "--confidence", "-o", "x")
    marks = "--confidence: marks words of a page; add --format html"
    assert call(calibrated, *align).error == call(calibrated, *align, "--format", "jsonl").error == marks
    learnt = ("align", *align[2:], "--format", "html", "--learn")
    assert "calibrated for a model, and --learn needs none" in call(calibrated, *learnt).error
    assert "run: is not calibrated; make it with: nmt calibrate" in call(trained, *align, "--format", "html").error
    hypothesis = ("evaluate", "--hypothesis", "test.en", "--reference", "test.en", "--risk-coverage")
    assert "leave out --hypothesis" in call(calibrated, *hypothesis).error


def test_a_damaged_calibration(calibrated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(calibrated, tmp_path, dirs_exist_ok=True, symlinks=True)
    path = tmp_path / "run" / "confidence.json"
    whole = json.loads(path.read_text("utf-8"))
    damaged: list[object] = [whole | {name: None} for name in whole]
    others: tuple[object, ...] = ([], {}, "x")
    damaged += [whole | {name: value} for name in whole for value in others if name != "languages"]
    damaged += [whole | {"lexicon": whole["lexicon"] | {name: "AAAA"}} for name in whole["lexicon"]]
    damaged += [
        whole | {"heads": whole["heads"] | {name: whole["heads"]["confidence"] | {"bias": None}}}
        for name in whole["heads"]
    ]
    texts = ["", "{", "[]", "[" * 100_000, *map(json.dumps, damaged)]
    model = load_trained("run")
    for text in texts:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=r"run/confidence.json: .*; make it with: nmt calibrate") as error:
            calibration.load(model)
        assert len(error.value.messages) == 1
    done = call(tmp_path, "translate", "run", "--confidence", *EXACT, stdin=TEXT)
    assert "is not a calibration, or damaged" in done.error
