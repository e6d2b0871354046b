"""The shipped German-English corpus: reproducible, clean, aligned, and its held-out split held out.

Everything is checked against one fresh run of the generator, whose sentences carry the record of
their derivation (lemmas, clause patterns and cells).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from corpus_de_en.clauses import Chain, Clause
from corpus_de_en.corpus import (
    MAX_WORDS,
    MIN_TRAIN_COUNT,
    MIN_WORDS,
    SIZES,
    WITHHELD_ONE_IN,
    Corpus,
    forms,
    generate,
    generate_long,
    length,
    withheld_cells,
    write,
)
from corpus_de_en.grammar import Sentence
from corpus_de_en.lexicon.adjectives import ADJECTIVES
from corpus_de_en.lexicon.nouns import NOUN
from corpus_de_en.lexicon.verbs import VERBS, Verb
from corpus_de_en.morphology import (
    ADJECTIVE_ENDINGS,
    CASES,
    a_or_an,
    english_ing,
    english_past,
    english_plural,
    english_third_person,
    german_noun,
)
from corpus_de_en.phrases import Enumeration, Name, Nominal, Rejected
from corpus_de_en.tokens import Token, align, finish

GENERATOR = Path(__file__).resolve().parents[1]
DATA = GENERATOR.parent / "de-en"
SPLITS = ("train", "valid", "test", "hard")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """The corpus, generated anew."""
    return generate()


def lines(name: str) -> list[str]:
    """The lines of a shipped file."""
    return (DATA / name).read_bytes().decode("utf-8").split("\n")[:-1]


def verb(lemma: str) -> Verb:
    """The first verb of that lemma."""
    return next(entry for entry in VERBS if entry.lemma == lemma)


class TestFiles:
    """The shipped files."""

    def test_generator_writes_the_shipped_bytes(self, corpus: Corpus, tmp_path: Path) -> None:
        write(corpus, tmp_path)
        written = sorted(path.name for path in tmp_path.iterdir())
        expected = [f"{split}.{side}" for split in SPLITS for side in ("de", "en")]
        expected += [f"{split}.align" for split in SPLITS if split != "train"]
        assert written == sorted(expected)
        for name in written:
            assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes(), name

    def test_does_not_depend_on_hash_seed(self) -> None:
        code = (
            "from corpus_de_en.grammar import Grammar\n"
            "from corpus_de_en.sampling import Sampler\n"
            "grammar = Grammar(Sampler(1))\n"
            "print(ascii([grammar.sentence().german for _ in range(200)]))\n"
        )
        outputs = {
            subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(GENERATOR)},
                capture_output=True,
                check=True,
                text=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(outputs) == 1

    def test_total_size(self) -> None:
        assert sum(path.stat().st_size for path in DATA.glob("*.*")) < 4_000_000

    @pytest.mark.parametrize("split", SPLITS)
    def test_sides_have_the_promised_number_of_lines(self, split: str) -> None:
        assert len(lines(f"{split}.de")) == len(lines(f"{split}.en")) == SIZES[split]

    @pytest.mark.parametrize("split", SPLITS)
    @pytest.mark.parametrize("side", ["de", "en"])
    def test_text_is_clean(self, split: str, side: str) -> None:
        raw = (DATA / f"{split}.{side}").read_bytes()
        assert b"\r" not in raw
        assert b"\x00" not in raw
        for line in lines(f"{split}.{side}"):
            assert line == line.strip()
            assert "  " not in line
            assert line[0].isupper() or line[0].isdigit()
            assert line[-1] in ".?!"
            assert MIN_WORDS <= len(line.split()) <= MAX_WORDS
            assert not any(mark in line for mark in (" ,", " .", ",,", ",.", ".."))


class TestSplits:
    """The splits."""

    def test_train_is_large_enough_and_without_repetition(self) -> None:
        sources = lines("train.de")
        assert len(sources) >= 20_000
        assert len(set(sources)) == len(sources)

    def test_no_source_is_in_two_splits(self) -> None:
        everything = [line for split in SPLITS for line in lines(f"{split}.de")]
        assert len(set(everything)) == len(everything)

    def test_only_hard_has_withheld_combinations(self, corpus: Corpus) -> None:
        for split in ("train", "valid", "test"):
            assert not any(withheld_cells(sentence) for sentence in corpus.splits[split])
        assert all(withheld_cells(sentence) for sentence in corpus.splits["hard"])

    def test_withheld_combinations_are_of_every_kind(self, corpus: Corpus) -> None:
        kinds = Counter(
            cell.partition(":")[0] for sentence in corpus.splits["hard"] for cell in withheld_cells(sentence)
        )
        assert set(kinds) == set(WITHHELD_ONE_IN)
        assert min(kinds.values()) >= 50

    def test_withheld_cells_never_occur_in_train(self, corpus: Corpus) -> None:
        seen = {cell for sentence in corpus.splits["train"] for cell in sentence.cells}
        for sentence in corpus.splits["hard"]:
            assert any(cell not in seen for cell in sentence.cells)

    def test_hard_has_only_well_known_parts(self, corpus: Corpus) -> None:
        units: Counter[str] = Counter()
        words: Counter[tuple[str, str]] = Counter()
        for sentence in corpus.splits["train"]:
            units.update(sentence.lemmas | sentence.patterns)
            words.update(("de", form) for form in forms(sentence.german))
            words.update(("en", form) for form in forms(sentence.english))
        for sentence in corpus.splits["hard"]:
            assert all(units[unit] >= MIN_TRAIN_COUNT for unit in sentence.lemmas | sentence.patterns)
            assert all(words["de", form] >= MIN_TRAIN_COUNT for form in forms(sentence.german))
            assert all(words["en", form] >= MIN_TRAIN_COUNT for form in forms(sentence.english))


class TestLengths:
    """The lengths: many short sentences, and enough long ones in every split."""

    def test_length_is_that_of_the_longer_side(self) -> None:
        sentence = Sentence("Er geht.", "He is going.", (), frozenset(), frozenset(), frozenset())
        assert length(sentence) == 3

    @pytest.mark.parametrize("split", SPLITS)
    def test_shares_of_long_sentences(self, split: str) -> None:
        longest = line_lengths(split)
        assert 0.03 <= sum(words > 20 for words in longest) / len(longest) <= 0.07
        assert 0.01 <= sum(words > 26 for words in longest) / len(longest) <= 0.04

    def test_the_longest_come_close_to_the_limit(self) -> None:
        longest = line_lengths("train")
        assert max(longest) >= 36
        assert sum(words > 35 for words in longest) >= 36

    @pytest.mark.parametrize("split", SPLITS)
    def test_none_is_longer_than_the_limit(self, split: str) -> None:
        assert max(line_lengths(split)) <= 40

    def test_short_sentences_remain(self) -> None:
        shares = [words <= 8 for words in line_lengths("train")]
        assert sum(shares) / len(shares) >= 0.25


def line_lengths(split: str) -> list[int]:
    """The words of the longer side of every pair of a shipped split."""
    pairs = zip(lines(f"{split}.de"), lines(f"{split}.en"), strict=True)
    return [max(len(source.split()), len(target.split())) for source, target in pairs]


class TestAlignments:
    """The gold links."""

    @pytest.mark.parametrize("split", ["valid", "test", "hard"])
    def test_links_are_within_their_sentences(self, split: str) -> None:
        triples = zip(lines(f"{split}.de"), lines(f"{split}.en"), lines(f"{split}.align"), strict=True)
        for source, target, links in triples:
            pairs = [link.replace("p", "-").split("-") for link in links.split()]
            assert len({tuple(pair) for pair in pairs}) == len(pairs)
            for left, right in pairs:
                assert 0 <= int(left) < len(source.split())
                assert 0 <= int(right) < len(target.split())

    def test_every_content_word_is_linked(self, corpus: Corpus) -> None:
        for split in ("valid", "test", "hard"):
            for sentence in corpus.splits[split]:
                assert not unlinked(sentence), sentence


class TestChains:
    """Several predicates of one subject: word order and what is said only once."""

    @staticmethod
    def chain(tense: str, *lemmas: str, modal: str = "") -> Chain:
        """Anna with some verbs that need no object."""
        subject = Name("Anna", "Anna", "f")
        return Chain([Clause(verb(lemma), subject, tense=tense, modal=modal) for lemma in lemmas])

    @pytest.mark.parametrize(
        ("tense", "modal", "main", "final", "english"),
        [
            (
                "pret",
                "",
                "Anna las, sah fern und kochte",
                "Anna las, fernsah und kochte",
                "Anna read, watched television and cooked",
            ),
            (
                "perf",
                "",
                "Anna hat gelesen, ferngesehen und gekocht",
                "Anna gelesen, ferngesehen und gekocht hat",
                "Anna read, watched television and cooked",
            ),
            (
                "plup",
                "",
                "Anna hatte gelesen, ferngesehen und gekocht",
                "Anna gelesen, ferngesehen und gekocht hatte",
                "Anna had read, watched television and cooked",
            ),
            (
                "fut",
                "",
                "Anna wird lesen, fernsehen und kochen",
                "Anna lesen, fernsehen und kochen wird",
                "Anna will read, watch television and cook",
            ),
            (
                "modal",
                "müssen",
                "Anna muss lesen, fernsehen und kochen",
                "Anna lesen, fernsehen und kochen muss",
                "Anna has to read, watch television and cook",
            ),
        ],
    )
    def test_order(self, tense: str, modal: str, main: str, final: str, english: str) -> None:
        chain = self.chain(tense, "lesen", "fernsehen", "kochen", modal=modal)
        assert text(chain.german_main()) == main + "."
        assert text(chain.german_final()) == final + "."
        assert text(chain.english_declarative()) == english + "."

    def test_different_auxiliaries_are_not_shared(self) -> None:
        with pytest.raises(Rejected):
            self.chain("perf", "lesen", "aufstehen")

    def test_links_follow_the_verbs(self) -> None:
        chain = self.chain("fut", "lesen", "kochen")
        source, target = finish(chain.german_final(), "."), finish(chain.english_declarative(), ".")
        # Anna lesen und kochen wird / Anna will read and cook
        assert " ".join(map(str, align(source, target))) == "0-0 1-2 2-3 3-4 4-1"

    def test_enumeration(self) -> None:
        people = Enumeration(
            Nominal(NOUN["Lehrer"]), Nominal(NOUN["Ärztin"]), Nominal(NOUN["Kind"], "num:drei=three", plural=True)
        )
        assert text(people.german("nom")) == "Der Lehrer, die Ärztin und drei Kinder."
        assert text(people.german("dat")) == "Dem Lehrer, der Ärztin und drei Kindern."
        assert text(people.english()) == "The teacher, the doctor and three children."


def text(tokens: Sequence[Token]) -> str:
    """The words of a finished sentence."""
    return " ".join(token.text for token in finish(tokens, "."))


def unlinked(sentence: Sentence) -> set[str]:
    """The words of both sides without any link."""
    source, target = sentence.german.split(), sentence.english.split()
    left = {link.source for link in sentence.links}
    right = {link.target for link in sentence.links}
    return {word for i, word in enumerate(source) if i not in left} | {
        word for j, word in enumerate(target) if j not in right
    }


class TestVariety:
    """The breadth of words and patterns."""

    def test_most_of_the_lexicon_is_in_train(self, corpus: Corpus) -> None:
        counts: Counter[str] = Counter()
        for sentence in corpus.splits["train"]:
            counts.update(sentence.lemmas)
        assert sum(count >= MIN_TRAIN_COUNT for count in counts.values()) >= 600

    @pytest.mark.parametrize(
        "pattern",
        [
            "pres",
            "pret",
            "perf",
            "plup",
            "fut",
            "prog",
            "already",
            "since",
            "separable",
            "modal-können",
            "modal-müssen",
            "modal-wollen",
            "modal-sollen",
            "modal-dürfen",
            "modal-möchten",
            "passive-pret",
            "passive-perf",
            "passive-pres",
            "passive-modal",
            "passive-fut",
            "front-time",
            "front-A",
            "front-D",
            "front-clause",
            "front-adverb",
            "clause-dass",
            "clause-ob",
            "clause-weil",
            "clause-obwohl",
            "clause-wenn",
            "clause-bevor",
            "clause-nachdem",
            "clause-während",
            "clause-als",
            "clause-sobald",
            "relative-nom",
            "relative-acc",
            "relative-dat",
            "relative-gen",
            "relative-prep",
            "relative-place",
            "infinitive-zu",
            "infinitive-um-zu",
            "infinitive-ohne-zu",
            "infinitive-es-ist",
            "question-yes-no",
            "question-who",
            "question-whom",
            "question-what",
            "question-where",
            "question-when",
            "question-why",
            "question-which",
            "question-how_many",
            "imperative-du",
            "imperative-ihr",
            "imperative-Sie",
            "negation",
            "es-gibt",
            "comparison-als",
            "comparison-wie",
            "comparison-superlative",
            "coordination-predicates",
            "coordination-clauses",
            "coordination-adversative",
            "coordination-phrases",
            "coordination-three",
            "chain",
            "enumeration",
            "enumeration-places",
            "clause-denn",
            "genitive-of-name",
            "genitive-of-person",
            "genitive-of-thing",
            "numeral",
            "gern",
        ],
    )
    def test_pattern_is_frequent(self, corpus: Corpus, pattern: str) -> None:
        found = sum(pattern in sentence.patterns for sentence in corpus.splits["train"])
        assert found >= 40, found


class TestInflection:
    """Forms against hand-written ones."""

    @pytest.mark.parametrize(
        ("lemma", "singular", "plural"),
        [
            ("Hund", "Hund Hund Hund Hundes", "Hunde Hunde Hunden Hunde"),
            ("Kind", "Kind Kind Kind Kindes", "Kinder Kinder Kindern Kinder"),
            ("Katze", "Katze Katze Katze Katze", "Katzen Katzen Katzen Katzen"),
            ("Junge", "Junge Jungen Jungen Jungen", "Jungen Jungen Jungen Jungen"),
            ("Student", "Student Studenten Studenten Studenten", "Studenten " * 4),
            ("Nachbar", "Nachbar Nachbarn Nachbarn Nachbarn", "Nachbarn " * 4),
            ("Auto", "Auto Auto Auto Autos", "Autos Autos Autos Autos"),
            ("Haus", "Haus Haus Haus Hauses", "Häuser Häuser Häusern Häuser"),
            ("Garten", "Garten Garten Garten Gartens", "Gärten Gärten Gärten Gärten"),
            ("Museum", "Museum Museum Museum Museums", "Museen Museen Museen Museen"),
            ("Lehrerin", "Lehrerin " * 4, "Lehrerinnen " * 4),
        ],
    )
    def test_noun(self, lemma: str, singular: str, plural: str) -> None:
        noun = NOUN[lemma]
        for number, expected in (("sg", singular), ("pl", plural)):
            found = [
                german_noun(noun.lemma, noun.genitive, noun.plural, noun.gender, noun.weak, number, case)
                for case in CASES
            ]
            assert found == expected.split()

    @pytest.mark.parametrize(
        ("lemma", "expected"),
        [
            ("lesen", "lese liest liest lest las gelesen lies"),
            ("geben", "gebe gibst gibt gebt gab gegeben gib"),
            ("arbeiten", "arbeite arbeitest arbeitet arbeitet arbeitete gearbeitet arbeite"),
            ("öffnen", "öffne öffnest öffnet öffnet öffnete geöffnet öffne"),
            ("fahren", "fahre fährst fährt fahrt fuhr gefahren fahr"),
            ("verraten", "verrate verrätst verrät verratet verriet verraten verrate"),
            ("aufmachen", "mache machst macht macht machte aufgemacht mach"),
            ("abschließen", "schließe schließt schließt schließt schloss abgeschlossen schließ"),
            ("besuchen", "besuche besuchst besucht besucht besuchte besucht besuch"),
            ("reparieren", "repariere reparierst repariert repariert reparierte repariert reparier"),
            ("umarmen", "umarme umarmst umarmt umarmt umarmte umarmt umarm"),
            ("bellen", "belle bellst bellt bellt bellte gebellt bell"),
            ("essen", "esse isst isst esst aß gegessen iss"),
            ("füttern", "füttere fütterst füttert füttert fütterte gefüttert füttere"),
            ("zeichnen", "zeichne zeichnest zeichnet zeichnet zeichnete gezeichnet zeichne"),
        ],
    )
    def test_german_verb(self, lemma: str, expected: str) -> None:
        entry = verb(lemma)
        found = [entry.present(cell) for cell in ("1s", "2s", "3s", "2p")]
        found += [entry.preterite("3s"), entry.participle, entry.imperative]
        assert found == expected.split()

    @pytest.mark.parametrize(
        ("lemma", "expected"),
        [("aufmachen", "aufzumachen"), ("besuchen", "zu besuchen"), ("teilnehmen", "teilzunehmen")],
    )
    def test_infinitive_with_zu(self, lemma: str, expected: str) -> None:
        assert " ".join(verb(lemma).zu_infinitive) == expected

    @pytest.mark.parametrize(
        ("german", "expected"),
        [
            ("alt", "alt älter ältest"),
            ("gut", "gut besser best"),
            ("hoch", "hoh höher höchst"),
            ("teuer", "teur teurer teuerst"),
            ("dunkel", "dunkl dunkler dunkelst"),
            ("hübsch", "hübsch hübscher hübschest"),
            ("müde", "müd müder müdest"),
        ],
    )
    def test_comparison(self, german: str, expected: str) -> None:
        entry = next(adjective for adjective in ADJECTIVES if adjective.german == german)
        assert [entry.stem, entry.comparative, entry.superlative] == expected.split()

    def test_adjective_endings(self) -> None:
        assert ADJECTIVE_ENDINGS["weak"]["m"] == ("e", "en", "en", "en")
        assert ADJECTIVE_ENDINGS["mixed"]["n"] == ("es", "es", "en", "en")
        assert ADJECTIVE_ENDINGS["strong"]["f"] == ("e", "e", "er", "er")

    def test_english(self) -> None:
        plurals = ("city", "bus", "box", "boy", "potato", "watch")
        assert [english_plural(noun) for noun in plurals] == ["cities", "buses", "boxes", "boys", "potatoes", "watches"]
        assert [english_third_person(word) for word in ("go", "carry", "wash", "have", "play")] == [
            "goes",
            "carries",
            "washes",
            "has",
            "plays",
        ]
        assert [english_past(word) for word in ("plan", "carry", "write", "travel", "play")] == [
            "planned",
            "carried",
            "wrote",
            "travelled",
            "played",
        ]
        assert [english_ing(word) for word in ("lie", "swim", "write", "see", "carry")] == [
            "lying",
            "swimming",
            "writing",
            "seeing",
            "carrying",
        ]
        assert [a_or_an(word) for word in ("apple", "university", "honest", "house")] == ["an", "a", "an", "a"]


def test_long_sentences_join_clauses_whose_words_and_links_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corpus_de_en.corpus.LONG_SIZES", {"test": 15, "train": 15})
    corpus = generate_long()
    assert corpus == generate_long()
    sentences = [sentence for split in corpus.splits.values() for sentence in split]
    assert len({sentence.german for sentence in sentences}) == 30
    lengths = [len(sentence.german.split()) for sentence in sentences]
    assert min(lengths) >= 10
    assert max(lengths) <= 80
    assert sum(length > 40 for length in lengths) >= 10
    english_of = {"aber": "but", "denn": "because"}
    for sentence in sentences:
        german, english = sentence.german.split(), sentence.english.split()
        linked = {(link.source, link.target) for link in sentence.links if link.sure}
        for place, word in enumerate(german):
            if word in english_of:
                assert any(english[target] == english_of[word] for source, target in linked if source == place)
        assert len({source for source, _ in linked}) > 0.6 * len(german)
