"""Noun phrases, prepositional phrases and adverbials in both languages at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from corpus_de_en.lexicon.adjectives import Adjective
from corpus_de_en.lexicon.nouns import Noun, Place
from corpus_de_en.morphology import (
    ADJECTIVE_ENDINGS,
    CASES,
    CONTRACTIONS,
    DER,
    DIESER_ENDINGS,
    RELATIVE,
    a_or_an,
    german_ein_word,
    german_noun,
)
from corpus_de_en.tokens import COMMA, Token, anchor, words


class Rejected(Exception):
    """Raised where a drawn combination would be ambiguous or odd; the sentence is redrawn."""


POSSESSIVES = {
    "mein": "my",
    "dein": "your",
    "sein": "his",
    "unser": "our",
    "euer": "your",
    "ihr_her": "her",
    "ihr_their": "their",
    "Ihr": "your",
}


@dataclass
class Relative:
    """A relative clause without its pronoun's comma, already realised in both languages."""

    german: list[Token]
    english: list[Token]


@dataclass(eq=False)
class NounPhrase:
    """Anything that can be a subject or an object.

    German is realised per case, English per function; both can be asked for several times.
    """

    person: str = "3s"
    gender: str = "m"
    definite: bool = True
    pronoun: bool = False
    animate: bool = False
    holds_first_place: bool = False
    """True if nothing may come before it (a phrase that begins with a relative pronoun)."""

    def german(self, case: str) -> list[Token]:
        """The German words in the given case."""
        raise NotImplementedError

    def english(self, function: str = "object") -> list[Token]:
        """The English words as ``subject`` or ``object``."""
        raise NotImplementedError

    @property
    def german_gender(self) -> str:
        """The gender, or ``pl`` in the plural."""
        return "pl" if self.person.endswith("p") else self.gender

    @property
    def marks_case(self) -> bool:
        """True if nominative and accusative differ, so that word order is free."""
        return [t.text for t in self.german("nom")] != [t.text for t in self.german("acc")]

    @property
    def contracts(self) -> bool:
        """True if a preposition fuses with the article."""
        return False

    @property
    def owner(self) -> str:
        """The possessive that refers back to this phrase, or empty if none is clear."""
        if self.person == "3p":
            return "ihr_their"
        return {"m": "sein", "f": "ihr_her", "n": ""}[self.gender]


PRONOUNS: dict[str, tuple[str, str, str, str, str, str, str]] = {
    # key: person, gender, nominative, accusative, dative, English subject, English object
    "ich": ("1s", "m", "ich", "mich", "mir", "I", "me"),
    "du": ("2s", "m", "du", "dich", "dir", "you", "you"),
    "er": ("3s", "m", "er", "ihn", "ihm", "he", "him"),
    "sie": ("3s", "f", "sie", "sie", "ihr", "she", "her"),
    "wir": ("1p", "m", "wir", "uns", "uns", "we", "us"),
    "ihr": ("2p", "m", "ihr", "euch", "euch", "you", "you"),
    "they": ("3p", "m", "sie", "sie", "ihnen", "they", "them"),
    "Sie": ("3p", "m", "Sie", "Sie", "Ihnen", "you", "you"),
    "es": ("3s", "n", "es", "es", "ihm", "it", "it"),
}
OWNERS = {
    "ich": "mein",
    "du": "dein",
    "er": "sein",
    "sie": "ihr_her",
    "wir": "unser",
    "ihr": "euer",
    "they": "ihr_their",
    "Sie": "Ihr",
    "es": "",
}


class Pronoun(NounPhrase):
    """A personal pronoun; ``english_key`` lets *er* stand for a thing (it)."""

    def __init__(self, key: str, english: tuple[str, str] | None = None) -> None:
        row = PRONOUNS[key]
        super().__init__(person=row[0], gender=row[1], pronoun=True, animate=True)
        self.key = key
        self._forms = dict(zip(("nom", "acc", "dat"), row[2:5], strict=True))
        self._english = english or (row[5], row[6])
        self._anchor = anchor()

    def german(self, case: str) -> list[Token]:
        return words(self._forms[case], self._anchor)

    def english(self, function: str = "object") -> list[Token]:
        return words(self._english[function != "subject"], self._anchor)

    @property
    def marks_case(self) -> bool:
        return self._forms["nom"] != self._forms["acc"]

    @property
    def owner(self) -> str:
        return OWNERS[self.key]


class Name(NounPhrase):
    """A proper name: a person, a titled person (Herr Müller), a city or a country."""

    def __init__(self, german: str, english: str, gender: str, animate: bool = True) -> None:
        super().__init__(person="3s", gender=gender, animate=animate)
        self._german, self._english = german.split(), english.split()
        self._anchors = [anchor() for _ in self._german]

    def german(self, case: str) -> list[Token]:
        parts = ["Herrn" if part == "Herr" and case != "nom" else part for part in self._german]
        return [t for part, a in zip(parts, self._anchors, strict=True) for t in words(part, a)]

    def english(self, function: str = "object") -> list[Token]:
        return [t for part, a in zip(self._english, self._anchors, strict=True) for t in words(part, a)]

    def genitive(self) -> tuple[list[Token], list[Token]]:
        """Annas / Anna's."""
        a = self._anchors[0]
        return words(self._german[0] + "s", a), words(self._english[0] + "'s", a)

    @property
    def marks_case(self) -> bool:
        return False


@dataclass
class Modifier:
    """An attributive adjective in one degree, with its anchor."""

    adjective: Adjective
    noun: Noun
    degree: str = "positive"
    link: int = field(default_factory=anchor)

    def german(self, ending: str) -> list[Token]:
        """The inflected German adjective."""
        stem = {
            "positive": self.adjective.stem,
            "comparative": self.adjective.comparative,
            "superlative": self.adjective.superlative,
        }[self.degree]
        cell = f"adjective-noun:{self.adjective.lemma}|{self.noun.lemma}"
        return words(stem + ending, self.link, notes=(self.adjective.lemma, cell))

    def english(self) -> list[Token]:
        """The English adjective, one or two words."""
        return words(
            {
                "positive": self.adjective.english,
                "comparative": self.adjective.english_comparative,
                "superlative": self.adjective.english_superlative,
            }[self.degree],
            self.link,
        )


class Nominal(NounPhrase):
    """Determiner, adjectives, noun and what follows it.

    ``determiner`` is one of ``def``, ``indef``, ``zero``, ``kein``, ``dies``, ``jed``, ``welch``,
    ``num:zwei``, ``many``, ``name`` or a key of ``POSSESSIVES``.
    """

    def __init__(
        self,
        noun: Noun,
        determiner: str = "def",
        plural: bool = False,
        modifiers: Iterable[Modifier] = (),
        possessor: NounPhrase | None = None,
        bare_english: bool = False,
    ) -> None:
        plural = plural or noun.plural_only
        gender = "m" if noun.plural_only else noun.gender
        super().__init__(
            person="3p" if plural else "3s",
            gender=gender,
            definite=determiner not in {"indef", "zero", "kein", "many"} and not determiner.startswith("num:"),
            animate=bool(noun.classes & {"person", "baby"}),
        )
        self.noun = noun
        self.determiner = determiner
        self.plural = plural
        self.modifiers = list(modifiers)
        self.possessor = possessor
        self.relative: Relative | None = None
        self.bare_english = bare_english
        self.link = anchor()
        self.determiner_link = anchor()
        self.no_means_no = False
        self.described = False

    @property
    def _number_gender(self) -> str:
        return "pl" if self.plural else self.noun.gender

    def _german_determiner(self, case: str) -> tuple[list[Token], str]:
        """The determiner and the adjective declension that follows it."""
        kind, gender = self.determiner, self._number_gender
        column = CASES.index(case)
        if kind == "def":
            return words(DER[gender][column], self.determiner_link), "weak"
        if kind in {"dies", "jed", "welch"}:
            return words(kind + DIESER_ENDINGS[gender][column], self.determiner_link), "weak"
        if kind.startswith("num:"):
            return words(kind[4:].split("=")[0], self.determiner_link), "strong"
        if kind == "many":
            return words("viele" + ("n" if case == "dat" else ""), self.determiner_link), "strong"
        if kind == "zero" or (kind == "indef" and self.plural):
            return [], "strong"
        if kind == "name":
            assert isinstance(self.possessor, Name)
            return self.possessor.genitive()[0], "strong"
        stem = {"indef": "ein", "ihr_her": "ihr", "ihr_their": "ihr"}.get(kind, kind)
        return words(german_ein_word(stem, gender, case), self.determiner_link), "mixed"

    def german(self, case: str) -> list[Token]:
        determiner, declension = self._german_determiner(case)
        ending = ADJECTIVE_ENDINGS[declension][self._number_gender][CASES.index(case)]
        result = list(determiner)
        for modifier in self.modifiers:
            result += modifier.german(ending)
        noun = self.noun
        form = german_noun(
            noun.lemma, noun.genitive, noun.plural, noun.gender, noun.weak, "pl" if self.plural else "sg", case
        )
        result += words(form, self.link, notes=(noun.lemma,))
        if self.possessor and self.determiner != "name":
            result += self.possessor.german("gen")
        if self.relative:
            result += [COMMA, *self.relative.german, COMMA]
        return result

    def _english_noun(self) -> list[Token]:
        forms = self.noun.english_plural if self.plural else self.noun.english
        return words(forms, self.link)

    def _english_determiner(self, following: str) -> list[Token]:
        kind, link = self.determiner, self.determiner_link
        if kind == "def":
            return words("the", link)
        if kind == "indef":
            return [] if self.plural else words(a_or_an(following), link)
        if kind == "zero":
            return []
        if kind == "kein":
            if self.no_means_no:
                return words("no", link)
            singular = not self.plural and not self.noun.mass
            return words(a_or_an(following) if singular else "any", link)
        if kind.startswith("num:"):
            return words(kind.split("=")[1], link)
        if kind == "dies":
            return words("these" if self.plural else "this", link)
        if kind == "name":
            assert isinstance(self.possessor, Name)
            return self.possessor.genitive()[1]
        fixed = {"jed": "every", "welch": "which", "many": "many"}
        return words(fixed.get(kind) or POSSESSIVES[kind], link)

    def english(self, function: str = "object") -> list[Token]:
        core = [t for modifier in self.modifiers for t in modifier.english()]
        core += self._english_noun()
        tail = self.relative.english if self.relative else []
        if self.possessor and self.determiner != "name":
            return self._english_genitive(core) + tail
        if self.bare_english:
            return [Token(t.text, t.sure, t.possible | {self.determiner_link}) for t in core] + tail
        return self._english_determiner(core[0].text) + core + tail

    def _english_genitive(self, core: list[Token]) -> list[Token]:
        """The teacher's book, but the roof of the house."""
        owner = self.possessor
        assert isinstance(owner, Nominal)
        if owner.animate:
            possessor = owner.english()
            last = possessor[-1]
            ending = "'" if last.text.endswith("s") and owner.plural else "'s"
            possessor[-1] = Token(last.text + ending, last.sure, last.possible)
            core[-1] = Token(core[-1].text, core[-1].sure, core[-1].possible | {self.determiner_link})
            return possessor + core
        of = words("of", maybe=(owner.determiner_link,))
        return self._english_determiner(core[0].text) + core + of + owner.english()

    @property
    def contracts(self) -> bool:
        return self.determiner == "def" and self.relative is None and not self.described

    def relative_pronoun(self, case: str) -> str:
        """The form of der/die/das as a relative pronoun referring to this phrase."""
        return RELATIVE[self._number_gender][CASES.index(case)]


def german_pp(preposition: str, np: NounPhrase, case: str, link: int) -> list[Token]:
    """Preposition and noun phrase, fused as usage demands (im, zum)."""
    first, *rest = np.german(case)
    fused = CONTRACTIONS.get((preposition, first.text))
    token = words(preposition, link)[0]
    if fused and np.contracts:
        return [token.joined(first, fused), *rest]
    return [token, first, *rest]


@dataclass(eq=False)
class Adverbial:
    """Something said in addition, fully realised; ``kind`` decides its position."""

    kind: str
    german: list[Token]
    english: list[Token]


def place_phrase(place: Place, np: Nominal, goal: bool) -> Adverbial:
    """At or to a place, with the prepositions that the place asks for."""
    link = anchor()
    if goal:
        case = "dat" if place.to_de == "zu" else "acc"
        german = german_pp(place.to_de, np, case, link)
        english = words(place.to_en, link)
    else:
        german = german_pp(place.at_de, np, "dat", link)
        english = words(place.at_en, link)
    return Adverbial("goal" if goal else "place", german, english + np.english())


def linked(german: str, english: str, links: str) -> tuple[list[Token], list[Token]]:
    """Fixed phrases with explicit word links: ``0-1`` sure, ``0p1`` possible."""
    left = [Token(word) for word in german.split()]
    right = [Token(word) for word in english.split()]
    for item in links.split():
        possible = "p" in item
        i, j = (int(part) for part in item.replace("p", "-").split("-"))
        link = frozenset({anchor()})
        if possible:
            left[i] = Token(left[i].text, left[i].sure, left[i].possible | link)
            right[j] = Token(right[j].text, right[j].sure, right[j].possible | link)
        else:
            left[i] = Token(left[i].text, left[i].sure | link, left[i].possible)
            right[j] = Token(right[j].text, right[j].sure | link, right[j].possible)
    return left, right


class Instrument(Nominal):
    """Klavier spielen: no article in German, *the* in English."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun, "zero")

    def english(self, function: str = "object") -> list[Token]:
        return [*words("the", maybe=(self.link,)), *super().english(function)]


class Possessed(Nominal):
    """A noun whose possessor is a relative pronoun (dessen Bruder)."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun, "zero")
        self.definite = self.holds_first_place = True


class Demonstrative(NounPhrase):
    """Das, pointing at something: that."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(person="3s", gender="n")
        self._link = anchor()

    def german(self, case: str) -> list[Token]:
        return words("das", self._link)

    def english(self, function: str = "object") -> list[Token]:
        return words("that", self._link)


def listed(parts: Sequence[list[Token]], conjunction: list[Token]) -> list[Token]:
    """An enumeration, with commas where there is no conjunction."""
    result = list(parts[0])
    if len(parts) == 1:
        return result
    for part in parts[1:-1]:
        result += [COMMA, *part]
    return [*result, *conjunction, *parts[-1]]


class Enumeration(NounPhrase):
    """Two or more people or things: the teacher, the doctor and three children."""

    def __init__(self, *items: NounPhrase) -> None:
        super().__init__(
            person="3p", definite=all(item.definite for item in items), animate=all(item.animate for item in items)
        )
        self.items = items
        self._link = anchor()

    def german(self, case: str) -> list[Token]:
        return listed([item.german(case) for item in self.items], words("und", self._link))

    def english(self, function: str = "object") -> list[Token]:
        return listed([item.english(function) for item in self.items], words("and", self._link))
