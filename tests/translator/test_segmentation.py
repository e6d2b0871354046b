"""Markup, documents and long lines, through the library and the command line, with a model that has learnt nothing:
what is kept must not depend on what it says."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import nmt as package
from nmt.data.context import Sentence
from nmt.data.segments import SourceLengths
from nmt.data.sentences import sentence_spans
from nmt.extras.documents.markup import extract
from nmt.search.config import SearchConfig
from nmt.translator.aligner import Aligner
from nmt.translator.loading import TrainedModel
from nmt.translator.segmentation import Segmentation
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator
from tests.workflows.runs import loaded, records, train_here, translated

MARKED = """\
Ein <b>Hund</b>, <i>zwei Katzen</i> und {x} &amp; 3,50.
<p>EINS <a href="x?a=1&amp;b=2">ZWEI</a></p><br/>

<li>eins</li><li>zwei www.a.b</li>
{x} 42
"""


@pytest.fixture(scope="module")
def marking(trained: Path) -> Translator:
    return loaded(trained, "search.markup=true")


def segments_of(translation: Translation) -> list[str]:
    return [source for source, _ in translation.parts]


# ----------------------------------------------------------------------------------------------------------- markup


def test_markup_comes_through_whatever_the_model_says(trained: Path) -> None:
    lines = translated(trained, "--markup", text=MARKED.encode()).decode().split("\n")[:-1]
    for source, line in zip(MARKED.split("\n")[:-1], lines, strict=True):
        items = Counter(item.text for item in extract(source).items)
        assert all(line.count(text) >= count for text, count in items.items())
    assert lines[1].startswith("<p>")
    assert lines[1].endswith("</p><br/>")
    assert lines[2] == ""
    assert lines[4] == "{x} 42"  # nothing to translate


def test_without_the_option_markup_is_text(translator: Translator) -> None:
    assert translator.candidates(["<b>Hund</b> {x}"]) == [
        tuple(replace(each, parts=(("<b>Hund</b> {x}", each.text),), longest=len(each.tokens)) for each in ranked)
        for ranked in translator.translate_sentences(["<b>Hund</b> {x}"])
    ]


def test_a_line_without_markup_is_translated_as_ever(translator: Translator, marking: Translator) -> None:
    texts = ["Hund und Katze.", "  eins zwei drei. ", ""]
    assert [each.text for each in marking.translate(texts)] == [each.text for each in translator.translate(texts)]


@pytest.mark.parametrize(("stand_in", "segment"), [("Katze", "Hund Katze und 2 1"), ("null", "Hund {x} und 7 1")])
def test_the_model_sees_plain_text_with_stand_ins(stand_in: str, segment: str, trained: Path) -> None:
    translator = loaded(trained, "search.markup=true", f"search.stand_in={stand_in}")
    assert segments_of(translator.translate("<b>Hund</b> {x} und 7 1")) == [segment]


def test_blocks_are_translated_apart(marking: Translator) -> None:
    one, other = marking.translate(["eins", "zwei"])
    assert marking.translate("<li>eins</li><li>zwei</li>").text == f"<li>{one.text}</li><li>{other.text}</li>"


def test_capitals_are_put_back(marking: Translator) -> None:
    upper, title = marking.translate(["EINS UND ZWEI", "Eins Und Zwei"])
    assert upper.parts == title.parts  # the same in ordinary case
    assert upper.text == upper.parts[0][1].upper() != upper.parts[0][1]
    assert title.text.split() == [word[0].upper() + word[1:] for word in title.parts[0][1].split()]


def test_lines_with_a_prefix_keep_their_case_and_are_whole(trained: Path) -> None:
    translator = loaded(trained, "search.markup=true", "search.document=true", lengths=SourceLengths(1, 30))
    (translation,) = translator.translate(["EINS <b>ZWEI</b>. DREI."], prefixes=["the"])
    assert segments_of(translation) == ["EINS ZWEI. DREI."]
    assert translation.parts[0][1].startswith("the")
    for phrase, segments in (("one", ["EINS. ZWEI."]), (" ", ["EINS.", "ZWEI."])):
        (translation,) = translator.translate(["EINS. ZWEI."], constraints=[[phrase]], prefixes=[" "])
        assert segments_of(translation) == segments


def test_formats_with_markup(trained: Path, translator: Translator) -> None:
    options, text = ("--markup", "--n-best", "3"), MARKED.encode()
    objects = records(trained, *options, "--alignment", text=text)
    rows = translated(trained, *options, "--format", "tsv", text=text).decode()
    texts = [found["text"] for each in objects for found in each["translations"]]
    assert [row.split("\t")[3] for row in rows.splitlines()] == texts
    assert [len(each["translations"]) for each in objects] == [3, 3, 1, 3, 1]
    tokenizer, first = translator.trained.tokenizers.target, objects[0]
    assert first["source"] == MARKED.split("\n")[0]
    for found in first["translations"]:
        assert "<b>" in found["text"]
        # scores, tokens and alignment are those of what the model was given and said
        ids = [tokenizer._processor.piece_to_id(each) for each in found["tokens"]]
        assert "".join(found["alignment"]["target_words"]) == "".join(tokenizer.detokenize(ids).split())
        assert found["alignment"]["source_words"] == "Ein Hund, zwei Katzen und X & 2.".split()  # noqa: SIM905
    assert objects[4]["translations"][0]["tokens"] == []


@pytest.mark.usefixtures("here")
def test_a_model_without_attention_aligns_by_gradients(tmp_path: Path) -> None:
    train_here("model.attention.score=none")
    text = loaded(tmp_path, "search.markup=true").translate("<b>Hund</b> und Katze.").text
    assert text.count("<b>") == text.count("</b>") == 1


# ------------------------------------------------------------------------------------------------------- documents

DOCUMENT = "  Eins zwei.  Drei (z. B. Hund)!\t\r\n\r\n \u00a0\n\tHund. Katze?\u2028Und eins\nEnde. Ja."


def test_documents_keep_white_space_and_line_endings(trained: Path, translator: Translator) -> None:
    lines = []
    for line in DOCUMENT.split("\n"):
        for begin, end in reversed(sentence_spans(line)):
            line = line[:begin] + translator.translate(line[begin:end]).text + line[end:]
        lines.append(line)
    expected = "\n".join(lines)
    assert translated(trained, "--document", text=DOCUMENT.encode()).decode() == expected.replace("\u2028", " ")
    assert translated(trained, "--document", text=b"\r\n\n \r") == b"\r\n\n \r"


def test_documents_in_other_formats_have_a_line_for_each_line(trained: Path, translator: Translator) -> None:
    objects = records(trained, "--document", "--alignment", text=DOCUMENT.encode())
    assert [each["line"] for each in objects] == [1, 2, 3, 4, 5]
    alignment = objects[0]["translations"][0]["alignment"]
    assert alignment["source_words"] == DOCUMENT.split("\n")[0].split()
    sources, targets = 2, len(translator.translate("Eins zwei.").text.split())  # words of the first sentence
    assert all((source < sources) == (target < targets) for source, target in alignment["links"])
    assert objects[1]["translations"][0]["text"] == ""


def test_a_long_sentence_of_a_document_is_split_too(trained: Path) -> None:
    translator = loaded(trained, "search.document=true", lengths=SourceLengths(1, 12))
    segments = segments_of(translator.translate("eins, zwei, drei, Hund, Katze und Hund. Ja."))
    assert len(segments) > 2
    assert all(len(translator.trained.tokenizers.source.encode(segment)) <= 12 for segment in segments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<b>Eins.  Zwei.</b> ", "<b>{}  {}</b> "),  # tags may reach over sentences
        ("Eins。Zwei。", "{} {}"),  # with the space that the translation needs
    ],
)
def test_sentences_of_a_document_are_translated_apart(text: str, expected: str, trained: Path) -> None:
    translator = loaded(trained, "search.markup=true", "search.document=true")
    sentences = [f"{word}{'。' if '。' in text else '.'}" for word in ("Eins", "Zwei")]
    assert translator.translate(text).text == expected.format(*(each.text for each in translator.translate(sentences)))


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [("「一。」", "二。", "「一。」二。"), ("หนึ่ง", "สอง", "หนึ่ง สอง"), ("일", "이", "일 이"), ("😀", "Ja", "😀 Ja")],
)
def test_sentences_are_joined_as_their_language_is_written(first: str, second: str, joined: str, trained: Path) -> None:
    translator = loaded(trained, "search.document=true")
    segmentation = Segmentation(translator.search, translator.trained, len, None, ["Eins. Zwei."], [False])
    translations = [(Translation(text, 0.0, 0.0),) for text in (first, second)]
    assert segmentation.join(translations, lambda: translator.aligner)[0][0].text == joined


# ------------------------------------------------------------------------------------------------------ long lines

LONG = "eins zwei drei. Hund und Katze. Drei eins."
SENTENCES = [LONG[begin:end] for begin, end in sentence_spans(LONG)]


def test_a_long_line_is_its_sentences_and_a_short_one_itself(trained: Path, translator: Translator) -> None:
    tokens = len(translator.trained.tokenizers.source.encode(LONG))
    whole = loaded(trained, lengths=SourceLengths(tokens, tokens, several=1.0))
    assert whole.candidates([LONG])[0][0].parts == ((LONG, whole.translate_sentences([LONG])[0][0].text),)
    split = loaded(trained, lengths=SourceLengths(tokens - 1, tokens - 1, several=1.0))
    found, singles = split.translate(LONG), split.translate(SENTENCES)
    assert found.text == " ".join(each.text for each in singles)
    assert found.log_prob == pytest.approx(sum(each.log_prob for each in singles))
    assert found.score == pytest.approx(sum(each.score for each in singles) / len(singles))
    assert found.tokens == tuple(token for each in singles for token in each.tokens)
    never = loaded(trained, "search.split_longer_than=null", lengths=SourceLengths(1, 1, several=0.0))
    assert never.translate(LONG) == whole.translate(LONG)
    assert loaded(trained, f"search.split_longer_than={tokens - 1}").translate(LONG).text == found.text


def test_n_best_lists_of_segments_are_joined_rank_by_rank(trained: Path, translator: Translator) -> None:
    text = " ".join(SENTENCES[1:])
    tokens = len(translator.trained.tokenizers.source.encode(text))
    translator = loaded(trained, "search.n_best=3", lengths=SourceLengths(tokens - 1, tokens))
    (found,) = translator.candidates([text])
    lists = translator.candidates(SENTENCES[1:])
    assert [each.text for each in found] == [f"{one.text} {other.text}" for one, other in zip(*lists, strict=True)]
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(("longer", "cut"), [("10", []), ("null", ["line 1", "line 2"])])
def test_only_a_line_that_is_not_split_is_cut(longer: str, cut: list[str], trained: Path) -> None:
    translator = loaded(trained, f"search.split_longer_than={longer}", "search.max_source_tokens=10")
    found = translator.translate(["eins " * 40, "eins" * 20 + " eins"])
    assert [warning.partition(": its last")[0] for warning in translator.cut_warnings(found)] == cut


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("1111111", "<111><1111>"),
        ("abcd/efg", "<abcd></efg>"),
        ("一二三四五六", "<一二三> <四五六>"),  # in a script without spaces each character is a word
        ("abc. defg", "<abc.> <defg>"),
    ],
)
def test_the_segments_of_a_long_word_are_joined_without_a_space(word: str, expected: str) -> None:
    data = SimpleNamespace(source_language=None)
    trained = SimpleNamespace(
        lengths=SourceLengths(5, 5), reads_single_sentences=False, copies=False, experiment=SimpleNamespace(data=data)
    )
    segmentation = Segmentation(SearchConfig(), cast(TrainedModel, trained), len, None, [word], [False])
    translations = [(Translation(f"<{text}>", 0.0, 0.0),) for text in segmentation.texts]
    ((found,),) = segmentation.join(translations, lambda: cast(Aligner, SimpleNamespace(extraction=None)))
    assert found.text == expected


# -------------------------------------------------------------------------------------- several sentences in a line

TWO = "eins zwei.  Hund und Katze."


def test_sentences_are_translated_apart_by_a_model_of_single_ones(trained: Path, translator: Translator) -> None:
    joined = " ".join(each.text for each in translator.translate(TWO.split("  ")))
    assert translator.translate(f" {TWO}").text.replace("  ", " ") == joined
    assert segments_of(translator.translate_sentences([TWO])[0][0]) == TWO.split("  ")  # `nmt align` aligns these
    for several, parts in ((None, 2), (0.02, 2), (0.2, 1)):  # None: a run of an earlier version
        lengths = SourceLengths(99, 99, several=several)
        assert len(loaded(trained, lengths=lengths).translate(TWO).parts) == parts
    assert len(loaded(trained, "search.split_longer_than=null").translate(TWO).parts) == 1


def test_a_line_feed_ends_a_line_whatever_the_model_has_learnt(trained: Path) -> None:
    translator = loaded(trained, lengths=SourceLengths(99, 99, several=1.0))
    one, other = translator.translate(["eins zwei", "Hund und Katze"])
    assert translator.translate("eins zwei\n\r\nHund und Katze").text == f"{one.text}\n\r\n{other.text}"


def test_a_line_that_must_be_whole_is_warned_of(trained: Path, translator: Translator) -> None:
    waits = package.load(trained / "run", precision="float32", wait=2)
    assert translator.cut_warnings(translator.translate([TWO] * 3)) == []
    (warning,) = translator.cut_warnings(translator.translate([TWO] * 3, prefixes=["the", "", "one"]))
    assert warning.startswith("line 1 and 1 others: translated as a whole though")
    (warning,) = waits.cut_warnings(waits.translate([TWO] * 3))
    assert warning.startswith("line 1 and 2 others: translated as a whole")


def test_abbreviations_are_those_of_the_source_language(trained: Path) -> None:
    pytest.importorskip("sentencex")
    translator = loaded(trained, "data.train.source=train.es")
    segments = segments_of(translator.translate("La Sra. Katze und Hund. Eins zwei."))
    assert segments == ["La Sra. Katze und Hund.", "Eins zwei."]


def test_the_context_of_a_sentence_begins_in_its_line(translator: Translator) -> None:
    lines = [Sentence(TWO, ["Drei. Eins."]), "-"]
    segments = Segmentation(translator.search, translator.trained, lambda _: 1, None, lines, [False, False]).texts
    assert segments == ["eins zwei.", "Hund und Katze."]
    assert [segment.previous for segment in segments if isinstance(segment, Sentence)] == [
        ("Drei.", "Eins."), ("Drei.", "Eins.", "eins zwei.")
    ]  # fmt: skip


# ---------------------------------------------------------------------------------------------- lines without a letter

SIGNS = ["-", "1.", " *** ", "\U0001f469\u200d\U0001f467", "42", "?!", "\u0301", "3,5\u2028%", "7\0\x1b[\x7f1"]


@pytest.mark.parametrize("option", ["search.beam=3", "search.document=true", "search.markup=true", "search.n_best=3"])
def test_lines_without_a_letter_are_copied(trained: Path, option: str) -> None:
    translator = loaded(trained, option)
    expected = [re.sub("[\u2028\0\x1b\x7f]", " ", line) for line in SIGNS]
    if option == "search.markup=true":
        expected = [line.strip() for line in expected]
    assert [[each.text for each in ranked] for ranked in translator.candidates(SIGNS)] == [[line] for line in expected]
    best = translator.translate("Hund. 42! - \u0915\u094d\u0937.")
    assert segments_of(best) == ["Hund.", "- \u0915\u094d\u0937."]  # letters with a mark
    assert " 42! " in best.text


def test_a_line_without_a_letter_has_no_alignment(trained: Path) -> None:
    ((found,),) = [each["translations"] for each in records(trained, "--alignment", text=b"42\n")]
    assert found.pop("alignment")["links"] == []
    assert found == {"text": "42", "score": 0.0, "log_prob": 0.0, "tokens": []}


@pytest.mark.parametrize(
    "setting", ["split_longer_than=0", "split_longer_than=often", "stand_in=two words", "markup=maybe"]
)
def test_what_makes_no_sense_is_refused(trained: Path, setting: str) -> None:
    with pytest.raises(package.InputError, match=f"search.{setting.partition('=')[0]}"):
        loaded(trained, f"search.{setting}")
