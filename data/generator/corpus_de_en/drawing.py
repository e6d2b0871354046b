"""Drawing the parts of a sentence: noun phrases, adverbials, clauses, and the record of them.

``Drawing`` is what all sentence patterns share.  While parts are drawn, a ``Record`` notes the
lemmas, the clause patterns and the *cells* (pairs of things that meet in a sentence: verb and
pattern, adjective and noun, verb and object, outer and inner pattern) on which the held-out split
is based.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from corpus_de_en.clauses import Argument, Clause, subordinate
from corpus_de_en.lexicon.adjectives import Adjective
from corpus_de_en.lexicon.function_words import (
    CITIES,
    COUNTRIES,
    FREQUENCY,
    LANGUAGES,
    MEN,
    MONTHS,
    NUMBERS,
    NUMERAL_UNITS,
    SEASONS,
    SENTENCE_ADVERBS,
    SURNAMES,
    TIME_WORDS,
    WEEKDAYS,
    WOMEN,
)
from corpus_de_en.lexicon.nouns import PLACE_OF, WHEREABOUTS, Noun
from corpus_de_en.lexicon.situations import (
    ACQUIRED,
    ALONE,
    ANIMAL_MODALS,
    BARE_PLURAL,
    CLEANING,
    COUNTED,
    DAILY,
    DEFINITE_ONLY,
    LONG_UNITS,
    MODAL_NAMES,
    ONCE,
    PAST_ONLY,
    REPAIRING,
    SINGLE,
    STATIVE,
    SUBJECT_PRONOUNS,
    TIMED,
    TOPICS,
    WANTED,
    YOUNGER,
)
from corpus_de_en.lexicon.verbs import BE, Frame, Slot, Verb
from corpus_de_en.phrases import (
    POSSESSIVES,
    Adverbial,
    Enumeration,
    Instrument,
    Modifier,
    Name,
    Nominal,
    NounPhrase,
    Pronoun,
    Rejected,
    linked,
    place_phrase,
)
from corpus_de_en.sampling import Sampler
from corpus_de_en.selection import FITTING, class_members, frames_with, is_child, is_person
from corpus_de_en.tokens import COMMA, Token, anchor, words

Sides = tuple[list[Token], list[Token]]
PAST = ("pret", "perf")

FRONT_WEIGHTS = {"time": 3.0, "place": 1.5, "A": 1.2, "D": 6.0}
"""Weights of the parts of a clause for its front position."""


@dataclass
class Record:
    """The parts of a sentence."""

    lemmas: set[str] = field(default_factory=set)
    patterns: set[str] = field(default_factory=set)
    cells: set[str] = field(default_factory=set)


class Drawing:
    """Draws the parts of sentences and keeps the record."""

    def __init__(self, sampler: Sampler) -> None:
        self.rng = sampler
        self.record = Record()

    def note(self, pattern: str) -> None:
        """Record a clause pattern."""
        self.record.patterns.add(pattern)

    def nest(self, outer: str, clause: Clause) -> None:
        """Record that ``clause`` is used inside (or as) the pattern ``outer``."""
        self.note(outer)
        inner = self.tense_name(clause)
        self.record.cells.add(f"nest:{outer}|{inner}")
        self.record.cells.add(f"verb-pattern:{clause.verb.lemma}|{outer}")

    @staticmethod
    def tense_name(clause: Clause) -> str:
        """The tense pattern of a clause, by name."""
        name = f"modal-{clause.modal}" if clause.tense == "modal" else clause.tense
        if clause.passive:
            name = f"passive-{clause.tense}"
        return name + ("-negated" if clause.negated else "")

    def _note_clause(self, clause: Clause) -> Clause:
        name = self.tense_name(clause)
        verb = clause.verb.lemma
        self.record.lemmas.add(verb)
        self.note(name)
        self.record.cells.add(f"verb-pattern:{verb}|{name}")
        if clause.verb.prefix:
            self.note("separable")
        for arg in clause.arguments:
            for np in arg.np.items if isinstance(arg.np, Enumeration) else (arg.np,):
                if isinstance(np, Nominal):
                    self.record.cells.add(f"verb-object:{verb}|{np.noun.lemma}")
        return clause

    def noun(self, classes: Sequence[str]) -> tuple[Noun, bool]:
        """A noun of one of the classes."""
        members = class_members(classes)
        return self.rng.balanced(members, [noun.lemma for noun, _ in members])

    def modifiers(self, noun: Noun, probability: float = 0.3) -> list[Modifier]:
        """No, one or two adjectives that fit the noun."""
        fitting = FITTING[noun.lemma]
        if "kin" in noun.classes:
            # meine große Schwester would be my elder sister
            fitting = [a for a in fitting if a.kind != "size"]
        if not fitting or not self.rng.chance(probability):
            return []
        chosen = [self._adjective(fitting)]
        colours = [a for a in fitting if a.kind == "colour"]
        if chosen[0].kind == "size" and colours and self.rng.chance(0.4):
            chosen.append(self._adjective(colours))
        return [Modifier(adjective, noun) for adjective in chosen]

    def _adjective(self, choices: Sequence[Adjective]) -> Adjective:
        return self.rng.balanced(choices, [a.lemma for a in choices])

    def name(self) -> Name:
        """A person's name."""
        if self.rng.chance(0.25):
            surname = self.rng.balanced(SURNAMES, SURNAMES)
            if self.rng.chance(0.5):
                return Name(f"Herr {surname}", f"Mr {surname}", "m")
            return Name(f"Frau {surname}", f"Mrs {surname}", "f")
        if self.rng.chance(0.5):
            man = self.rng.balanced(MEN, MEN)
            return Name(man, man, "m")
        woman = self.rng.balanced(WOMEN, WOMEN)
        return Name(woman, woman, "f")

    def subject(self, frame: Frame, pronouns: Sequence[str] = SUBJECT_PRONOUNS) -> NounPhrase:
        """A subject that the frame allows."""
        classes = frame.subject
        if "person" in classes or "adult" in classes:
            kind = self.rng.weighted([("pronoun", 0.3 if pronouns else 0.0), ("name", 0.2), ("noun", 0.5)])
            if kind == "pronoun":
                return Pronoun(self.rng.choice(pronouns))
            if kind == "name":
                return self.name()
        return self.subject_noun(classes)

    def subject_noun(self, classes: Sequence[str]) -> Nominal:
        """A full noun phrase as subject."""
        noun, plural = self.noun(classes)
        rel = "rel" in noun.classes
        person = bool(noun.classes & {"person", "baby"})
        options: list[tuple[str, float]] = [("def", 6.0)]
        if rel:
            options.append(("poss", 6.0 if "kin" in noun.classes else 2.0))
        elif person and "baby" not in noun.classes:
            options += [("indef", 1.0), ("dies", 1.0)]
        elif noun.classes & {"ownable", "pet"}:
            options += [("poss", 2.0), ("dies", 1.0)]
        if not plural and not noun.mass and not noun.classes & {"kin", "sun", "area", "room"}:
            plural = self.rng.chance(0.2)
        kind = self.rng.weighted(options)
        if kind == "indef" and plural:
            kind = "def"
        if kind == "poss":
            kind = self.rng.choice(("mein", "dein", "unser", "mein", "sein"))
        bare = "kin" in noun.classes and kind == "def"
        return Nominal(noun, kind, plural, [] if bare else self.modifiers(noun, 0.36))

    def object(
        self,
        classes: Sequence[str],
        subject: NounPhrase | None,
        pronouns: bool = False,
        definite: bool = False,
        numbers: bool = False,
    ) -> NounPhrase:
        """An object noun phrase; possessives refer back to the subject."""
        if classes[0] in {"city", "country"}:
            return self.region(self.rng.choice(classes))
        if classes[0] == "language":
            german = self.rng.balanced(list(LANGUAGES), list(LANGUAGES))
            return Name(german, LANGUAGES[german], "n", animate=False)
        if pronouns and "person" in classes and self.rng.chance(0.2):
            return self.object_pronoun(subject)
        if "person" in classes and self.rng.chance(0.15):
            return self.name()
        noun, plural = self.noun(classes)
        person = bool(noun.classes & {"person", "baby"})
        options: list[tuple[str, float]] = [("def", 6.0)]
        owner = subject.owner if subject is not None and is_person(subject) else ""
        own = bool(noun.classes & {"rel", "pet", "ownable"})
        if "womens" in noun.classes and owner == "sein":
            own = False
        if subject is not None and is_child(subject) and noun.lemma in YOUNGER:
            own = False
        if own and owner:
            options.append(("own", 9.0 if "kin" in noun.classes else 3.0))
        if "kin" not in noun.classes and not definite and not (noun.classes & DEFINITE_ONLY):
            options.append(("zero" if noun.mass else "indef", 4.0))
            if numbers and not noun.mass and not noun.plural_only:
                options.append(("num", 1.5))
        if not person and not noun.mass:
            options.append(("dies", 1.0))
        kind = self.rng.weighted(options)
        if "help" in noun.classes:
            kind = "def" if definite else "zero"
        if noun.plural_only and kind == "indef":
            kind = "def"
        if not plural and not noun.mass and not noun.plural_only and kind in {"def", "indef"}:
            plural = self.rng.chance(0.15) and "kin" not in noun.classes
            if kind == "indef" and (not noun.classes & BARE_PLURAL or noun.lemma.endswith(("kuchen", "Kuchen"))):
                plural = False
            if noun.classes & {"area", "water", "room", "body", "building", "event"}:
                plural = False
        if kind == "own":
            kind = owner
            plural = plural or (not noun.mass and bool(noun.classes & {"ware", "footwear"}) and self.rng.chance(0.15))
        if kind == "num":
            number = self.rng.balanced(list(NUMBERS), list(NUMBERS))
            kind, plural = f"num:{number}={NUMBERS[number]}", True
            self.note("numeral")
        bare = "kin" in noun.classes and kind == "def"
        return Nominal(noun, kind, plural, [] if bare else self.modifiers(noun, 0.38))

    def object_pronoun(self, subject: NounPhrase | None) -> Pronoun:
        """An object pronoun that is neither ambiguous nor about the subject itself."""
        clash = {"ich": {"ich", "wir"}, "wir": {"ich", "wir"}, "du": {"du", "ihr"}, "ihr": {"du", "ihr"}, "er": {"er"}}
        key = subject.key if isinstance(subject, Pronoun) else ""
        choices = [k for k in ("ich", "du", "er", "wir", "ihr") if k not in clash.get(key, set())]
        if subject is not None and not subject.pronoun and subject.person == "3s":
            choices = [k for k in choices if k != "er"]
        return Pronoun(self.rng.choice(choices))

    def region(self, kind: str) -> Name:
        """A city or a country."""
        table = CITIES if kind == "city" else COUNTRIES
        german = self.rng.balanced(list(table), list(table))
        return Name(german, table[german], "n", animate=False)

    def whereabouts(self, group: str, goal: bool, definite: bool = False) -> Adverbial:
        """A place phrase from a group of places (or a city, a country)."""
        if group in {"city", "country"}:
            name, link = self.region(group), anchor()
            german, english = ("nach", "to") if goal else ("in", "in")
            return Adverbial(
                "goal" if goal else "place",
                [*words(german, link), *name.german("dat")],
                [*words(english, link), *name.english()],
            )
        lemma = self.rng.balanced(WHEREABOUTS[group], WHEREABOUTS[group])
        place = PLACE_OF[lemma]
        if place.bare:
            return place_phrase(place, Nominal(place.noun, bare_english=True), goal)
        kind = "def"
        if (
            not definite
            and lemma in {"Restaurant", "Hotel", "Café", "Dorf", "Schloss", "Wohnung", "Fabrik"}
            and (self.rng.chance(0.35) and (not goal or place.to_de != "zu"))
        ):
            kind = "indef"
        np = Nominal(place.noun, kind, False, self.modifiers(place.noun, 0.18))
        return place_phrase(place, np, goal)

    def time(self, tense: str) -> Adverbial:
        """A time expression that goes with past, present, future or modal."""
        kind = self.rng.weighted(
            [
                ("fixed", 5.0),
                ("weekday", 1.2),
                ("clock", 0.0 if tense == "present" else 0.8),
                ("month", 0.8),
                ("count", 1.0),
            ]
        )
        if kind == "fixed":
            fitting = [t for t in TIME_WORDS if tense in t.tenses]
            choice = self.rng.balanced(fitting, [t.german for t in fitting])
            german, english = linked(choice.german, choice.english, choice.links)
        elif kind == "weekday":
            day = self.rng.balanced(list(WEEKDAYS), list(WEEKDAYS))
            if tense == "present":
                german, english = linked(f"jeden {day}", f"every {WEEKDAYS[day]}", "0-0 1-1")
            else:
                german, english = linked(f"am {day}", f"on {WEEKDAYS[day]}", "0-0 1-1")
        elif kind == "clock":
            hour = self.rng.balanced(list(NUMBERS)[:11], list(NUMBERS)[:11])
            german, english = linked(f"um {hour} Uhr", f"at {NUMBERS[hour]} o'clock", "0-0 1-1 2-2")
        elif kind == "month":
            german, english = self._calendar(tense)
        else:
            german, english = self._counted_time(tense)
        return Adverbial("time", german, english)

    def _calendar(self, tense: str) -> Sides:
        month = self.rng.balanced(list(MONTHS), list(MONTHS))
        kind = self.rng.weighted([("day", 2.0), ("month", 1.0), ("year", 0.5), ("season", 1.0)])
        if tense == "present":
            if self.rng.chance(0.4):
                return linked("jeden Monat", "every month", "0-0 1-1")
            season = self.rng.balanced(list(SEASONS), list(SEASONS))
            return linked(f"jeden {season}", f"every {SEASONS[season]}", "0-0 1-1")
        if kind == "season":
            season = self.rng.balanced(list(SEASONS), list(SEASONS))
            return linked(f"im {season}", f"in {SEASONS[season]}", "0-0 1-1")
        if kind == "day":
            day = 1 + int(self.rng.choice(range(28)))
            return linked(f"am {day}. {month}", f"on {day} {MONTHS[month]}", "0-0 1-1 2-2")
        if kind == "year" and tense == "past":
            year = 1990 + self.rng.choice(range(35))
            return linked(f"im Jahr {year}", f"in {year}", "0-0 1p0 2-1")
        return linked(f"im {month}", f"in {MONTHS[month]}", "0-0 1-1")

    def _counted_time(self, tense: str) -> Sides:
        unit = self.rng.balanced(list(NUMERAL_UNITS), list(NUMERAL_UNITS))
        if tense == "past" and unit in {"Stunde", "Minute"}:
            unit = "Tag"
        several = list(NUMBERS)[: 5 if unit in {"Stunde", "Minute"} else 12]
        number = self.rng.balanced(several, several)
        german_unit, english_unit = NUMERAL_UNITS[unit]
        if tense == "past":
            return linked(f"vor {number} {german_unit}", f"{NUMBERS[number]} {english_unit} ago", "0-2 1-0 2-1")
        if tense in {"future", "modal"}:
            return linked(f"in {number} {german_unit}", f"in {NUMBERS[number]} {english_unit}", "0-0 1-1 2-2")
        return linked("jeden Tag", "every day", "0-0 1-1")

    def _schedule(self) -> Adverbial:
        """The hour or the day of an event; it goes with every tense."""
        if self.rng.chance(0.65):
            hour = self.rng.balanced(list(NUMBERS)[:11], list(NUMBERS)[:11])
            return Adverbial("time", *linked(f"um {hour} Uhr", f"at {NUMBERS[hour]} o'clock", "0-0 1-1 2-2"))
        day = self.rng.balanced(list(WEEKDAYS), list(WEEKDAYS))
        return Adverbial("time", *linked(f"am {day}", f"on {WEEKDAYS[day]}", "0-0 1-1"))

    def frequency(self) -> Adverbial:
        """An adverb such as often."""
        german = self.rng.balanced(list(FREQUENCY), list(FREQUENCY))
        return Adverbial("frequency", *linked(german, FREQUENCY[german], "0-0"))

    def pick(
        self, need: Sequence[str] = (), avoid: Sequence[str] = (), test: Callable[[Frame], bool] | None = None
    ) -> tuple[Verb, Frame]:
        """A verb and one of its frames, with the marks wanted."""
        options = frames_with(tuple(need), tuple(avoid))
        if test is not None:
            options = [(verb, frame) for verb, frame in options if test(frame)]
        if not options:
            raise Rejected
        index = self.rng.balanced(range(len(options)), [f"{v.lemma}/{f.text}" for v, f in options])
        return options[index]

    def clause(
        self, verb: Verb, frame: Frame, subject: NounPhrase, plain: bool = False, pronouns: bool = True
    ) -> Clause:
        """A clause with all required complements and perhaps some free ones (unless plain)."""
        arguments = []
        for slot in frame.slots:
            if slot.kind == "R":
                arguments.append(Argument(slot))
            elif slot.kind in {"AT", "TO"}:
                place = self.whereabouts(self.rng.choice(slot.classes), slot.kind == "TO")
                arguments.append(Argument(slot, adverbial=place))
            elif slot.kind == "I":
                noun, _ = self.noun(slot.classes)
                arguments.append(Argument(slot, Instrument(noun)))
            else:
                swap = "swap" in frame.marks
                owner = None if swap else subject
                np = self.object(
                    slot.classes,
                    owner,
                    pronouns=pronouns,
                    definite=slot.kind in {"D", "D>", "P"} or "def" in frame.marks,
                    numbers=verb.lemma in COUNTED,
                )
                if verb.lemma in SINGLE and np.person == "3p":
                    raise Rejected
                if isinstance(np, Nominal):
                    self._check_sense(verb, np, slot)
                arguments.append(Argument(slot, np))
        if verb.lemma in SINGLE and subject.person.endswith("p"):
            raise Rejected
        people = [a.np for a in arguments if a.np is not None and a.np.pronoun]
        if len(people) > 1:
            raise Rejected
        clause = Clause(verb, subject, arguments, swap="swap" in frame.marks)
        self._check_distinct(clause)
        if not plain:
            self.extras(clause, frame)
        return clause

    @staticmethod
    def _check_sense(verb: Verb, np: Nominal, slot: Slot) -> None:
        """Raise for objects that contradict the verb."""
        described = {modifier.adjective.lemma for modifier in np.modifiers}
        if verb.lemma == "interessieren (sich)" and "interessant" in described:
            raise Rejected
        if verb.lemma == "empfehlen" and described & {"hässlich", "langweilig", "schlecht"}:
            raise Rejected
        if verb.lemma in WANTED and described & {"schmutzig", "hässlich", "schlecht", "langweilig"}:
            raise Rejected
        if "schmutzig" in described and verb.lemma in {"essen", "trinken"}:
            raise Rejected
        if "sauber" in described and verb.lemma in CLEANING:
            raise Rejected
        if "kaputt" in described and verb.lemma not in REPAIRING:
            raise Rejected
        if verb.lemma in ACQUIRED and np.determiner in POSSESSIVES:
            raise Rejected
        if (
            slot.kind == "P"
            and np.plural
            and np.noun.classes & {"furniture", "box_like", "building", "part", "opening", "vehicle", "event", "trip"}
        ):
            raise Rejected

    @staticmethod
    def _check_distinct(clause: Clause) -> None:
        """No noun or name twice in one clause."""
        seen: set[str] = set()
        for np in [clause.subject, *(arg.np for arg in clause.arguments)]:
            if np is None or np.pronoun:
                continue
            key = " ".join(t.text for t in np.english()[-1:])
            if key in seen:
                raise Rejected
            seen.add(key)

    def extras(self, clause: Clause, frame: Frame) -> None:
        """Free additions: manner, company, place."""
        if frame.manner and self.rng.chance(0.35):
            clause.manner = self.rng.choice([m for m in frame.manner if m != "gern"] or [""])
        if "with" in frame.marks and self.rng.chance(0.25):
            clause.companion = self.object(("kin", "Freund", "Freundin"), clause.subject)
            friend = clause.companion
            if not isinstance(friend, Nominal) or friend.determiner not in POSSESSIVES:
                clause.companion = None
        if frame.place and self.rng.chance(0.45):
            clause.place = self.whereabouts(frame.place, False)

    def set_tense(
        self, clause: Clause, frame: Frame, allowed: Sequence[str] = ("past", "present", "future"), timed: float = 0.55
    ) -> str:
        """Choose a tense (and a time that fits it); returns the time sphere."""
        weights = {"past": 5.0, "present": 3.0, "future": 1.7, "modal": 2.8}
        if "event" in frame.marks or "state" in frame.marks:
            weights["modal"] = 0.0
            weights["future"] = 0.0 if "state" in frame.marks else 1.0
        if clause.verb.lemma in PAST_ONLY:
            allowed = ("past",)
        sphere = self.rng.weighted([(name, weights[name]) for name in allowed])
        state = "state" in frame.marks
        if sphere == "past":
            self._past(clause)
            if (not state or clause.verb.lemma in {"stehen", "liegen"}) and self.rng.chance(timed):
                clause.time = self.time("past")
        elif sphere == "present":
            clause.tense = "pres"
            if not state:
                kind = self.rng.weighted([("time", 5.0), ("frequency", 4.0), ("prog", 2.5)])
                if kind == "prog" and not self._can_progress(clause, frame):
                    kind = "frequency"
                if kind == "time":
                    clause.time = self.time("present")
                elif kind == "frequency":
                    clause.frequency = self.frequency()
                else:
                    clause.tense = "prog"
            if clause.time or clause.frequency:
                self._habitual(clause)
        elif sphere == "future":
            clause.tense = "fut"
            if self.rng.chance(timed + 0.2):
                clause.time = self.time("future")
        else:
            clause.tense = "modal"
            names = MODAL_NAMES if is_person(clause.subject) else ANIMAL_MODALS
            clause.modal = self.rng.balanced(names, names)
            past = clause.modal in {"können", "müssen", "wollen", "dürfen"}
            if past and self.rng.chance(0.35):
                clause.modal_tense = "pret"
                if self.rng.chance(0.3):
                    clause.time = self.time("past")
            elif self.rng.chance(timed - 0.2) and is_person(clause.subject):
                clause.time = self.time("modal")
        if sphere == "present" and any(
            isinstance(arg.np, Nominal) and arg.np.determiner.startswith("num:") for arg in clause.arguments
        ):
            raise Rejected
        if clause.verb.lemma == "wachsen":
            clause.time = None
        if (
            clause.verb.lemma == "frühstücken"
            and clause.time
            and any(token.text in {"Abend", "Nachmittag"} for token in clause.time.german)
        ):
            raise Rejected
        if clause.verb.lemma in DAILY and clause.time and any(token.text in LONG_UNITS for token in clause.time.german):
            raise Rejected
        if clause.frequency and not clause.manner and clause.verb.lemma in {"aufwachen", "aufstehen"}:
            raise Rejected  # everybody usually wakes up
        if clause.verb.lemma in TIMED:
            if clause.tense == "prog":
                clause.tense = "pres"
            clause.time, clause.frequency = self._schedule(), None
        return sphere

    def _past(self, clause: Clause) -> None:
        person = clause.subject.person
        spoken = person.startswith("2")
        state = clause.verb.lemma in STATIVE
        clause.tense = "perf" if spoken or (not state and self.rng.chance(0.58)) else "pret"

    @staticmethod
    def _can_progress(clause: Clause, frame: Frame) -> bool:
        return not frame.marks & {"event", "state"} and clause.verb.lemma not in {
            "finden",
            "bestehen",
            "zerbrechen",
            "verlassen",
            "erreichen",
            "betreten",
            "verraten",
            "bemerken",
            "beleidigen",
            "akzeptieren",
            "retten",
            "verhaften",
            "feiern",
        }

    @staticmethod
    def _habitual(clause: Clause) -> None:
        """Things one does only once are not done every day."""
        if clause.verb.lemma in ONCE:
            raise Rejected

    def negate(self, clause: Clause, probability: float) -> None:
        """Perhaps negate, where the rules for nicht and kein are simple."""
        if not self.rng.chance(probability):
            return
        if clause.frequency or clause.manner or clause.companion or clause.place:
            return
        if clause.tense == "prog" or clause.argument("I") or clause.argument("N"):
            return
        if clause.time and clause.tense == "pres":
            return
        if not clause.subject.definite:
            return
        direct = clause.argument("A")
        for arg in clause.arguments:
            np = arg.np
            if np is None or np.definite or np.pronoun:
                continue
            if arg is not direct or not isinstance(np, Nominal):
                return
            if np.determiner.startswith("num:") or np.modifiers:
                return
            np.determiner = "kein"
        clause.negated = True
        self.note("negation")

    def main_clause(self, clause: Clause) -> Sides:
        """Put one constituent first, in the way of its language."""
        options = list(clause.frontable())
        front = "subject"
        if options and self.rng.chance(0.9 if "D" in options else 0.5):
            front = self.rng.weighted([(name, FRONT_WEIGHTS[name]) for name in options])
        if front == "subject" and clause.tense in (*PAST, "fut") and self.rng.chance(0.05):
            return self._sentence_adverb(clause)
        if front == "subject" and isinstance(clause.subject, Pronoun) and (clause.subject.key in {"they", "Sie"}):
            raise Rejected
        self.nest(f"front-{front}", clause)
        german = clause.german_main(front)
        if front == "time" and clause.time:
            english = [*clause.time.english, *clause.english_declarative(without=("time",))]
        else:
            english = clause.english_declarative()
        return german, english

    def _sentence_adverb(self, clause: Clause) -> Sides:
        german = self.rng.balanced(list(SENTENCE_ADVERBS), list(SENTENCE_ADVERBS))
        english = SENTENCE_ADVERBS[german]
        pairs = {1: {1: "0-0", 2: "0-0 0-1"}, 2: {1: "0-0 1-0"}}
        left, right = linked(german, english, pairs[len(german.split())][len(english.split())])
        self.nest("front-adverb", clause)
        if german != "vielleicht":
            right.append(COMMA)
        return [*left, *clause.german_after()], [*right, *clause.english_declarative()]

    def passive_clause(self) -> Clause:
        """A clause in the passive, with or without its agent."""
        verb, frame = self.pick(("pass",))
        slot = next(slot for slot in frame.slots if slot.kind == "A")
        subject = self.subject_noun(slot.classes)
        if subject.noun.mass and subject.determiner != "def":
            raise Rejected
        others = [
            Argument(other, self.object(other.classes, None, definite=True))
            for other in frame.slots
            if other.kind != "A"
        ]
        clause = Clause(verb, subject, others, passive=True)
        if self.rng.chance(0.5):
            actor = self.subject(frame, pronouns=())
            if isinstance(actor, Nominal) and actor.determiner in {"sein", "dein"}:
                raise Rejected
            clause.agent = actor
        tense = self.rng.weighted([("pret", 4.0), ("pres", 5.0), ("perf", 2.0), ("modal", 1.5), ("fut", 1.2)])
        clause.tense = tense
        if verb.lemma in PAST_ONLY and tense not in PAST:
            raise Rejected
        if tense == "pres":
            if verb.lemma in ONCE or clause.agent is None:
                raise Rejected
            clause.time = self.time("present")
        elif tense == "modal":
            clause.modal = self.rng.choice(("müssen", "können", "sollen", "müssen"))
            clause.agent = None
        if tense in PAST and self.rng.chance(0.5):
            clause.time = self.time("past")
        if tense == "fut" and self.rng.chance(0.7):
            clause.time = self.time("future")
        if clause.agent is not None:
            self._distinct(subject, clause.agent)
        return clause

    @staticmethod
    def _distinct(*phrases: NounPhrase) -> None:
        """Raise unless the phrases name different things in both languages."""
        last = [np.english()[-1].text for np in phrases if not np.pronoun]
        if len(set(last)) < len(last):
            raise Rejected

    @staticmethod
    def _distinct_people(person: NounPhrase, clause: Clause) -> None:
        """The speaker's name must not come up again in what is said."""
        if person.pronoun:
            return
        name = person.english()[-1].text
        if any(t.text == name for t in clause.english_declarative()):
            raise Rejected

    def someone(self, pronouns: Sequence[str] = ("ich", "er", "sie", "wir")) -> NounPhrase:
        """A person as subject."""
        if self.rng.chance(0.35):
            return Pronoun(self.rng.choice(pronouns))
        if self.rng.chance(0.3):
            return self.name()
        return self.subject_noun(("person",))

    def same_person(self, subject: NounPhrase) -> Pronoun:
        """The pronoun for a person just mentioned."""
        if isinstance(subject, Pronoun):
            return Pronoun(subject.key)
        if subject.person == "3p":
            return Pronoun("they")
        if subject.gender == "n":
            raise Rejected
        return Pronoun({"m": "er", "f": "sie"}[subject.gender])

    def person_clause(
        self,
        subject: NounPhrase,
        test: Callable[[Frame], bool] | None = None,
        avoid: Sequence[str] = ("state", "event"),
    ) -> tuple[Clause, Frame]:
        """Something that a given person does."""

        def fits(frame: Frame) -> bool:
            if frame.verb in ALONE:
                return False
            right = "person" in frame.subject or ("adult" in frame.subject and not is_child(subject))
            return right and (test is None or test(frame))

        verb, frame = self.pick(avoid=avoid, test=fits)
        return self.clause(verb, frame, subject, pronouns=False), frame

    @staticmethod
    def related(verb: Verb) -> Callable[[Frame], bool]:
        """A test for frames of verbs that one would mention together with ``verb``."""
        topics = {topic for topic, lemmas in TOPICS.items() if verb.lemma in lemmas}
        if not topics:
            raise Rejected
        lemmas = {lemma for topic in topics | {"people"} for lemma in TOPICS[topic]}
        return lambda frame: frame.verb in lemmas

    @staticmethod
    def named(lemmas: frozenset[str]) -> Callable[[Frame], bool]:
        """A test for frames of the given verbs."""
        return lambda frame: frame.verb in lemmas

    def state(self, subject: NounPhrase, german: str, english: str, tense: str, negated: bool = False) -> Clause:
        """Somebody is in a state (müde sein)."""
        link = anchor()
        predicate = Adverbial("complement", words(german, link), words(english, link))
        clause = Clause(BE, subject, tense=tense, complement=predicate, negated=negated)
        self.record.lemmas.add(german.split()[-1])
        return clause

    def attach(self, conjunction: tuple[str, str], inner: Clause, outer: Clause, first: bool) -> Sides:
        """Main and subordinate clause, in either order."""
        self._note_clause(inner)
        self._note_clause(outer)
        self.nest(f"clause-{conjunction[0]}", inner)
        self.nest(f"beside-{conjunction[0]}", outer)
        german, english = subordinate(conjunction, inner)
        if first:
            self.note("front-clause")
            return ([*german, COMMA, *outer.german_after()], [*english, COMMA, *outer.english_declarative()])
        return ([*outer.german_main(), COMMA, *german], [*outer.english_declarative(), *english])
