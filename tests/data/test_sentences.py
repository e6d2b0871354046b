"""Ends of sentences."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.sentences import sentence_spans

# Each with its sentences set apart by a bar, which is not part of the text.
CASES = {
    "abbreviations": "Das ist z. B. ein Hund. | Er bellt z.B. laut usw. | Dann schläft er.",
    "titles": "Prof. Dr. h. c. Karl Meier traf Mr. Smith. | Alle klatschten.",
    "initials": "J. R. R. Tolkien and J.R.R. Martin met. | They talked.",
    "country": "He lives in the U.S. and works. | She left the U.S. | My brother is in the U.S. Army.",
    "time": "It began at 5 p.m. on Monday. | It ended at 6 a.m. | The bus left.",
    "company": "Apple Inc. in Cupertino and Meyer GmbH & Co. KG agreed. | It was No. 1.",
    "references": "See e.g. Fig. 3 (cf. Sec. 2.1). | Siehe S. 5 ff. und Abb. 3. | Gut.",
    "words that look like abbreviations": "This is art. | I like No. 5. | No. | So do I. | Plan B. | It works.",
    "street": "Er wohnt in der Goethestr. 5. | Sie auch in der Hauptstr. 12a.",
    "decimals": "Es kostet 3.50 Euro und 1.000 Cent. | Viel.",
    "date": "Am 12.3.2020 um 10.30 Uhr. | Am 3. Mai. | Am Dienstag, 3. Mai, kam er.",
    "ordinals": "Das 19. Jahrhundert war lang. | Im 20. Jh. kam mehr. | Der 3. Versuch gelang.",
    "kings": "Friedrich II. war König. | Ludwig XIV. baute Versailles. | Er starb.",
    "a number at the end": "Es war 1990. | Danach kam er um 5. | Er ging um 6.",
    "a numbered heading": "1. Einleitung",
    "quotes": 'Er sagte: „Ich komme.“ | Dann ging er. | »Was?«, fragte er. | »Nichts.« | "Stop!" he said. | Why?',
    "brackets": "Was? | Ja! | (Das ist wahr.) | [Siehe oben.] | Gut.",
    "ellipses": "Ich warte… | Er kommt nicht. | Wait... what? | Der ... Hund.",
    "many marks": "Das war's!!! | Echt?! | Ja.",
    "addresses": "Visit www.example.com. | Mail a.b@c.de. | Danke.",
    "no space": "Hallo.Welt ist da.",
    "chinese": "你好。|今天天气很好！|你呢？|他说：“我来了。你呢？”|然后走了。|《你好！世界》很好。",
    "japanese": "彼は「行きます。」と言った。|そして去った。|今日は３．５度です。",
    "hindi": "यह एक है। | यह दो है।",
    "arabic": "هل أنت هنا؟ | نعم. | حسنا.",
    "russian": "Как дела? | Хорошо. | А. С. Пушкин писал.",
    "line separators": "Titel ohne Punkt\u2028|und mehr\r|ende",
}


@pytest.mark.parametrize("case", CASES)
def test_hard_cases(case: str) -> None:
    sentences = [each.strip() for each in CASES[case].split("|")]
    text = CASES[case].replace(" | ", "  ").replace("|", "")
    assert [text[begin:end] for begin, end in sentence_spans(text)] == sentences


ABBREVIATIONS = {
    "es": "La Sra. García y la Srta. Ruiz viven en la Av. Juárez. | ¡Hola! | Adiós.",
    "cs": "Bydlí v ul. Dlouhá. | Je to tzv. Velká válka, např. Praha. | Ano.",
    "it": "Il Dott. Verdi abita ad es. Milano. | Il Sig. Rossi no.",
    "ru": "Он живёт на ул. Ленина. | Это тов. Сталин. | Да.",
    "el": "Ήρθε η δρ. Μαρία. | Ναι.",
}


@pytest.mark.parametrize("language", ABBREVIATIONS)
def test_abbreviations_of_a_known_language(language: str) -> None:
    pytest.importorskip("sentencex")
    text = ABBREVIATIONS[language].replace(" | ", " ")
    sentences = ABBREVIATIONS[language].split(" | ")
    assert [text[begin:end] for begin, end in sentence_spans(text, language)] == sentences
    assert len(sentence_spans(text)) > len(sentences)


@given(st.text(alphabet=" \t\u00a0\r\u2028abBI13.!?…。„“\"'()zVX-"))
def test_sentences_and_the_white_space_between_are_the_text(text: str) -> None:
    joined, last = "", 0
    for begin, end in sentence_spans(text):
        assert not text[last:begin].strip()
        assert begin < end
        assert text[begin:end] == text[begin:end].strip()
        joined += text[last:begin] + text[begin:end]
        last = end
    assert joined + text[last:] == text
    assert not text[last:].strip()


@pytest.mark.parametrize("unit", ["a", "a. ", ".", "「。", " ", "\t\r"])
def test_a_line_as_long_as_may_be_takes_no_time(unit: str) -> None:
    text = unit * (65_536 // len(unit))
    started = time.process_time()
    sentence_spans(text)
    sentence_spans(text, "es")
    assert time.process_time() - started < 3.0
