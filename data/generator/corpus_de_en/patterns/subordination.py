"""Sentences with a subordinate clause: content, time, reason and condition."""

from __future__ import annotations

from collections.abc import Sequence

from corpus_de_en.clauses import Argument, Clause, comma_join, subordinate
from corpus_de_en.drawing import Drawing, Sides
from corpus_de_en.lexicon.nouns import NOUN
from corpus_de_en.lexicon.situations import (
    DURATIVE,
    HINDRANCES,
    INDOORS,
    MOMENTS,
    PAID,
    REACTIONS,
    REASONS,
    RESTING,
    SUBJECT_PRONOUNS,
    TEMPORAL,
    VISITS,
)
from corpus_de_en.lexicon.verbs import ASK_ONESELF, HAVE, KNOW, RAIN, SAYING, SNOW, Slot
from corpus_de_en.phrases import Nominal, NounPhrase, Pronoun, Rejected
from corpus_de_en.selection import outdoors
from corpus_de_en.tokens import COMMA


class Subordination(Drawing):
    """Sentences with a subordinate clause: content, time, reason and condition."""

    def free_clause(self, pronouns: Sequence[str] = (*SUBJECT_PRONOUNS, "they")) -> Clause:
        """Any clause, active or passive, for use inside another one."""
        if self.rng.chance(0.12):
            clause = self.passive_clause()
            if clause.tense == "fut" and clause.subject.person == "3p":
                raise Rejected  # nobody likes gegossen werden werden
            return self._note_clause(clause)
        verb, frame = self.pick()
        clause = self.clause(verb, frame, self.subject(frame, pronouns))
        self.set_tense(clause, frame, ("past", "present", "future", "modal"), timed=0.4)
        self.negate(clause, 0.12)
        return self._note_clause(clause)

    def content_clause(self) -> tuple[Sides, str]:
        """Verbs of saying, knowing and asking with dass, ob and question words."""
        inner = self.free_clause()
        kind = self.rng.weighted([("dass", 6.0), ("ob", 2.0), ("wh", 2.0)])
        person = NounPhrase()
        people = ("person",)
        if self.rng.chance(0.35):
            person = Pronoun(self.rng.choice(("ich", "er", "sie", "wir")))
        elif self.rng.chance(0.3):
            person = self.name()
        else:
            person = self.subject_noun(people)
        self._distinct_people(person, inner)
        if kind != "dass" and inner.frequency and inner.frequency.german[0].text in {"nie", "selten"}:
            raise Rejected
        if kind != "dass" and inner.negated:
            raise Rejected
        conjunction = ("dass", "that")
        if kind == "dass":
            verbs = [v for v in SAYING if v.lemma not in {"sagen", "behaupten"} or person.person.startswith("3")]
            verb = self.rng.balanced(verbs, [v.lemma for v in verbs])
            if verb.lemma == "hoffen" and (inner.negated or inner.tense not in {"fut", "perf"}):
                raise Rejected
            outer = Clause(verb, person)
        elif kind == "ob":
            conjunction = ("ob", "whether")
            asks = self.rng.chance(0.5)
            outer = Clause(ASK_ONESELF if asks else KNOW, person)
            if asks:
                outer.arguments.append(Argument(Slot("R", ())))
            else:
                outer.negated = True
        else:
            word = self.rng.choice(("warum", "wann"))
            conjunction = (word, {"warum": "why", "wann": "when"}[word])
            outer = Clause(KNOW, person, negated=self.rng.chance(0.5))
            if word == "wann":
                inner.time = inner.frequency = None
                if inner.tense in {"pres", "prog"} or inner.negated or inner.swap:
                    raise Rejected
        self.record.lemmas.add(outer.verb.lemma)
        self.nest(f"clause-{conjunction[0]}", inner)
        german, english = subordinate(conjunction, inner)
        return (comma_join(outer.german_main(), german), [*outer.english_declarative(), *english]), "."

    def temporal(self) -> tuple[Sides, str]:
        """Two things that happen one after the other or at the same time."""
        kind, inner, outer, first = self.temporal_parts()
        return self.attach((kind, TEMPORAL[kind]), inner, outer, first), "."

    def temporal_parts(self) -> tuple[str, Clause, Clause, bool]:
        """Conjunction, subordinate clause, main clause, and whether the former comes first."""
        subject = self.someone()
        kind = self.rng.weighted([("bevor", 2.0), ("nachdem", 2.5), ("während", 1.5), ("als", 2.0), ("sobald", 1.0)])
        first = self.rng.chance(0.5)
        if kind == "während":
            other = self.subject_noun(("person",))
            self._distinct(subject, other)
            outer, _ = self.person_clause(other)
            inner, _ = self.person_clause(subject, self.related(outer.verb))
            if inner.verb.lemma not in DURATIVE:
                raise Rejected
        else:
            second = self.same_person(subject)
            moment = kind in {"als", "sobald"}
            outer, _ = self.person_clause(second if first else subject, self.named(REACTIONS) if moment else None)
            if moment:
                outer.place = None
            test = self.named(MOMENTS) if moment else self.related(outer.verb)
            inner, _ = self.person_clause(subject if first else second, test, avoid=("state",))
        if outer.verb.lemma == inner.verb.lemma:
            raise Rejected
        if kind == "sobald":
            inner.tense, outer.tense, inner.manner = "pres", "fut", ""
        else:
            outer.tense = "pret"
            inner.tense = {"nachdem": "plup", "während": "while"}.get(kind, "pret")
        if self.rng.chance(0.25) and kind != "sobald" and not first:
            outer.time = None
        return kind, inner, outer, first

    def reason(self) -> tuple[Sides, str]:
        """weil (not done because of a hindrance), obwohl (done in spite of it)."""
        kind, inner, outer = self.reason_parts()
        return self.attach((kind, REASONS[kind]), inner, outer, self.rng.chance(0.2)), "."

    def reason_parts(self) -> tuple[str, Clause, Clause]:
        """Conjunction, subordinate clause and main clause."""
        subject = self.someone(("ich", "er", "sie", "wir", "du"))
        kind = self.rng.choice(("weil", "obwohl"))
        which = self.rng.weighted([("state", 3.0), ("lack", 2.0), ("weather", 2.0), ("late", 1.0), ("money", 1.0)])
        tests = {"money": self.named(PAID), "weather": outdoors}
        outer, _ = self.person_clause(subject, tests.get(which))
        outer.tense = "perf" if subject.person.startswith("2") or self.rng.chance(0.5) else "pret"
        if kind == "weil":
            outer.manner, outer.place, outer.companion = "", None, None
            self.negate(outer, 1.0)
            if not outer.negated or (outer.kein is not None and outer.verb.lemma not in PAID):
                raise Rejected
            if self.rng.chance(0.4):
                outer.tense, outer.modal, outer.modal_tense = "modal", "können", "pret"
        if outer.verb.lemma in RESTING:
            raise Rejected
        if outer.manner in {"früh", "spät"}:
            outer.manner = ""
        if self.rng.chance(0.4):
            outer.time = self.time("past")
        return kind, self.circumstance(self.same_person(subject), which), outer

    def circumstance(self, subject: NounPhrase, which: str) -> Clause:
        """Something that stands in somebody's way."""
        if which == "state":
            german, english = self.rng.choice(HINDRANCES)
            return self.state(subject, german, english, "pret")
        if which in {"lack", "money"}:
            noun = NOUN["Zeit" if which == "lack" else "Geld"]
            np = Nominal(noun, "kein")
            np.no_means_no = True
            return Clause(HAVE, subject, [Argument(Slot("A", ()), np)], tense="pret", negated=True)
        if which == "weather":
            if self.rng.chance(0.5):
                return Clause(RAIN, Pronoun("es"), tense="pret")
            return self.state(Nominal(NOUN["Wetter"]), "schlecht", "bad", "pret")
        german, english = self.rng.choice((("spät", "late"), ("dunkel", "dark")))
        return self.state(Pronoun("es"), german, english, "pret")

    def reported_complex(self) -> tuple[Sides, str]:
        """Somebody says that one thing happened because of, or before, another."""
        if self.rng.chance(0.5):
            kind, inner, outer = self.reason_parts()
            english = REASONS[kind]
        else:
            kind, inner, outer, first = self.temporal_parts()
            english = TEMPORAL[kind]
            if first:
                raise Rejected
        speaker = self.someone(("ich", "er", "sie", "wir"))
        if not speaker.pronoun:
            self._distinct_people(speaker, outer)
            self._distinct_people(speaker, inner)
        elif outer.subject.pronoun:
            raise Rejected
        verbs = [
            verb
            for verb in SAYING
            if verb.lemma != "hoffen" and (verb.lemma not in {"sagen", "behaupten"} or speaker.person.startswith("3"))
        ]
        verb = self.rng.balanced(verbs, [v.lemma for v in verbs])
        says = Clause(verb, speaker)
        self.record.lemmas.add(verb.lemma)
        self._note_clause(inner)
        self._note_clause(outer)
        self.nest(f"clause-{kind}", inner)
        self.nest("clause-dass", outer)
        self.record.cells.add(f"nest:dass|{kind}")
        that = subordinate(("dass", "that"), outer)
        because = subordinate((kind, english), inner)
        return (
            [*says.german_main(), COMMA, *that[0], COMMA, *because[0]],
            [*says.english_declarative(), *that[1], *because[1]],
        ), "."

    def condition(self) -> tuple[Sides, str]:
        """wenn: what will be done if a condition is met."""
        subject = self.someone(("ich", "er", "sie", "wir"))
        first = self.rng.chance(0.6)
        second = self.same_person(subject)
        which = self.rng.weighted(
            [("time", 1.2), ("money", 1.0), ("fine", 1.5), ("bad", 1.2), ("guest", 1.5), ("fit", 1.5)]
        )
        tests = {"money": self.named(PAID), "fine": outdoors, "bad": self.named(INDOORS)}
        outer, _ = self.person_clause(second if first and which != "guest" else subject, tests.get(which))
        outer.tense = "fut"
        person = subject if first else second
        if outer.verb.lemma in {"sitzen", "stehen", "liegen"}:
            raise Rejected
        goal = outer.argument("TO")
        if (
            which == "fine"
            and goal is not None
            and goal.adverbial is not None
            and any(
                "room" in NOUN[note].classes for token in goal.adverbial.german for note in token.notes if note in NOUN
            )
        ):
            raise Rejected
        if which == "fine":
            inner = self.state(Nominal(NOUN["Wetter"]), *self.rng.choice((("schön", "nice"), ("gut", "good"))), "pres")
            if self.rng.chance(0.4):
                inner = Clause(self.rng.choice((RAIN, SNOW)), Pronoun("es"), negated=True)
        elif which == "bad":
            inner = self.state(Nominal(NOUN["Wetter"]), "schlecht", "bad", "pres")
            if self.rng.chance(0.5):
                inner = Clause(self.rng.choice((RAIN, SNOW)), Pronoun("es"))
            outer.place = None
            if outer.argument("AT") is not None and outer.verb.lemma == "ausruhen (sich)":
                raise Rejected
        elif which in {"time", "money"}:
            noun = NOUN["Zeit" if which == "time" else "Geld"]
            inner = Clause(HAVE, person, [Argument(Slot("A", ()), Nominal(noun, "zero"))])
        elif which == "fit":
            german, english = self.rng.choice(HINDRANCES)
            inner = self.state(person, german, english, "pres", negated=True)
        else:
            other = self.subject_noun(("person",))
            inner, _ = self.person_clause(other, self.named(VISITS), avoid=("state",))
            self._distinct(subject, other)
            inner.tense, inner.place, inner.companion, inner.manner = "pres", None, None, ""
        if self.rng.chance(0.4):
            outer.time = self.time("future")
        return self.attach(("wenn", "if"), inner, outer, first), "."
