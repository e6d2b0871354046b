"""The verbs: principal parts, English counterpart and the frames that they are used in; see verbs.tsv."""

from __future__ import annotations

from dataclasses import dataclass

from corpus_de_en.lexicon.tables import rows
from corpus_de_en.morphology import INSEPARABLE, german_imperative, german_present, german_preterite, weak_participle


@dataclass(frozen=True)
class Slot:
    """One complement of a frame."""

    kind: str
    classes: tuple[str, ...]
    de_prep: str = ""
    case: str = ""
    en_prep: str = ""


@dataclass(frozen=True)
class Frame:
    """A use of a verb: the classes of its subject, its complements and what may be added."""

    subject: tuple[str, ...]
    slots: tuple[Slot, ...]
    place: str
    manner: tuple[str, ...]
    marks: frozenset[str]
    text: str
    verb: str


@dataclass(frozen=True)
class Verb:
    """A German verb in one sense, with the English verb that renders it."""

    lemma: str
    infinitive: str
    prefix: str
    third: str
    preterite_form: str
    participle_form: str
    aux: str
    english: str
    particle: tuple[str, ...]
    particle_place: str
    frames: tuple[Frame, ...] = ()

    def present(self, cell: str) -> str:
        """The finite present form without a separable prefix."""
        return german_present(self.infinitive, self.third, cell)

    def preterite(self, cell: str) -> str:
        """The finite preterite form without a separable prefix."""
        return german_preterite(self.infinitive, self.preterite_form, cell)

    @property
    def participle(self) -> str:
        """The past participle, prefix included (aufgemacht)."""
        inseparable = not self.prefix and self.infinitive.startswith(INSEPARABLE)
        if self.infinitive == "bellen":
            inseparable = False
        return self.prefix + (self.participle_form or weak_participle(self.infinitive, inseparable))

    @property
    def full_infinitive(self) -> str:
        """The infinitive as one word (aufmachen)."""
        return self.prefix + self.infinitive

    @property
    def zu_infinitive(self) -> tuple[str, ...]:
        """The infinitive with zu, which goes inside a separable verb (aufzumachen)."""
        if self.prefix:
            return (self.prefix + "zu" + self.infinitive,)
        return ("zu", self.infinitive)

    @property
    def imperative(self) -> str:
        """The singular imperative without a separable prefix."""
        return german_imperative(self.infinitive, self.third)


def parse_frame(text: str, verb: str) -> Frame:
    """Parse the notation of frames in verbs.tsv; ``verb`` is the lemma."""
    words = text.split()
    slots: list[Slot] = []
    place = ""
    manner: tuple[str, ...] = ()
    marks: set[str] = set()
    for word in words[1:]:
        head, _, rest = word.partition(":")
        if word.startswith("@"):
            place = word[1:]
        elif head == "m":
            manner = tuple(rest.split(","))
        elif head == "P":
            de_prep, case, en_prep, classes = rest.split(":")
            slots.append(
                Slot("P", tuple(classes.split("+")), de_prep, {"a": "acc", "d": "dat"}[case], en_prep.replace("_", " "))
            )
        elif head in {"A", "D", "I", "N", "AT", "TO"}:
            slots.append(Slot(head, tuple(rest.split("+"))))
        elif head.startswith("D>"):
            slots.append(Slot("D>", tuple(rest.split("+")), en_prep=head[2:]))
        elif word == "R":
            slots.append(Slot("R", ()))
        else:
            marks.add(word)
    return Frame(tuple(words[0].split("+")), tuple(slots), place, manner, frozenset(marks), text, verb)


def _verb(infinitive: str, forms: str, english: str, sense: str, *frames: str) -> Verb:
    prefix, _, base = infinitive.rpartition("|")
    parts = forms.split()
    aux = parts.pop(0) if parts and parts[0] == "sein" else "haben"
    third, preterite, participle = parts or ("", "", "")
    words = english.split()
    particle = words[1:]
    position = "near"
    if particle and particle[0][0] in "^_":
        position = {"^": "shift", "_": "late"}[particle[0][0]]
        particle = [particle[0][1:], *particle[1:]]
    return Verb(
        prefix + base + sense,
        base,
        prefix,
        third,
        preterite,
        participle,
        aux,
        words[0],
        tuple(particle),
        position,
        tuple(parse_frame(frame, prefix + base + sense) for frame in frames),
    )


VERBS = tuple(_verb(*row) for row in rows("verbs.tsv", 4))

BE = Verb("sein", "sein", "", "ist", "war", "gewesen", "sein", "be", (), "near")

HAVE = Verb("haben", "haben", "", "hat", "hatte", "gehabt", "haben", "have", (), "near")

COST = Verb("kosten", "kosten", "", "", "", "", "haben", "cost", (), "near")


def _simple(lemma: str, english: str, forms: str = "") -> Verb:
    """A verb that only these patterns use."""
    third, preterite, participle = forms.split() or ("", "", "")
    prefix, _, base = lemma.rpartition("|")
    return Verb(prefix + base, base, prefix, third, preterite, participle, "haben", english, (), "near")


# fmt: off
RAIN = _simple("regnen", "rain")

SNOW = _simple("schneien", "snow")

KNOW = _simple("wissen", "know", "weiß wusste gewusst")

ASK_ONESELF = _simple("fragen", "wonder")

SAYING = (
    _simple("sagen", "say"),
    _simple("glauben", "believe"),
    KNOW,
    _simple("hoffen", "hope"),
    _simple("vermuten", "suspect"),
    _simple("behaupten", "claim"),
    _simple("meinen", "think"),
)

CONTROL = (
    _simple("versuchen", "try"),
    _simple("vergessen", "forget", "vergisst vergaß vergessen"),
    _simple("beschließen", "decide", "beschließt beschloss beschlossen"),
    _simple("hoffen", "hope"),
    _simple("planen", "plan"),
    _simple("versprechen", "promise", "verspricht versprach versprochen"),
    _simple("an|fangen", "start", "fängt fing gefangen"),
)

MODALS: dict[str, dict[str, str]] = {
    "können": {"1s": "kann", "2s": "kannst", "3s": "kann", "1p": "können", "2p": "könnt",
               "3p": "können", "pret": "konnte"},
    "müssen": {"1s": "muss", "2s": "musst", "3s": "muss", "1p": "müssen", "2p": "müsst",
               "3p": "müssen", "pret": "musste"},
    "wollen": {"1s": "will", "2s": "willst", "3s": "will", "1p": "wollen", "2p": "wollt",
               "3p": "wollen", "pret": "wollte"},
    "sollen": {"1s": "soll", "2s": "sollst", "3s": "soll", "1p": "sollen", "2p": "sollt",
               "3p": "sollen", "pret": "sollte"},
    "dürfen": {"1s": "darf", "2s": "darfst", "3s": "darf", "1p": "dürfen", "2p": "dürft",
               "3p": "dürfen", "pret": "durfte"},
    "möchten": {"1s": "möchte", "2s": "möchtest", "3s": "möchte", "1p": "möchten",
                "2p": "möchtet", "3p": "möchten", "pret": ""},
}
"""Finite forms of the modal verbs; the preterite takes the weak endings."""

AUXILIARIES: dict[str, dict[str, str]] = {
    "haben": {"1s": "habe", "2s": "hast", "3s": "hat", "1p": "haben", "2p": "habt", "3p": "haben",
              "pret": "hatte"},
    "sein": {"1s": "bin", "2s": "bist", "3s": "ist", "1p": "sind", "2p": "seid", "3p": "sind",
             "pret": "war"},
    "werden": {"1s": "werde", "2s": "wirst", "3s": "wird", "1p": "werden", "2p": "werdet",
               "3p": "werden", "pret": "wurde"},
}
# fmt: on


def auxiliary(lemma: str, tense: str, cell: str) -> str:
    """A finite form of haben, sein, werden or a modal; ``tense`` is ``pres`` or ``pret``."""
    forms = AUXILIARIES.get(lemma) or MODALS[lemma]
    if tense == "pres":
        return forms[cell]
    return german_preterite(lemma, forms["pret"], cell)
