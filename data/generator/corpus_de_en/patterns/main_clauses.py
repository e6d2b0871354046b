"""Main clauses: statements, passives, orders, coordination, facts about time and weather."""

from __future__ import annotations

from corpus_de_en.clauses import Clause
from corpus_de_en.drawing import PAST, Drawing, Sides
from corpus_de_en.lexicon.function_words import MONTHS, NUMBERS, NUMERAL_UNITS, SEASONS, TIME_WORDS
from corpus_de_en.lexicon.situations import FORBIDDEN, GLADLY, ORDERED_NEW, SINCE_FRAMES
from corpus_de_en.lexicon.verbs import RAIN, SNOW, Frame
from corpus_de_en.phrases import Adverbial, Enumeration, Nominal, NounPhrase, Pronoun, Rejected, linked
from corpus_de_en.tokens import COMMA, Token, anchor, words


class MainClauses(Drawing):
    """Main clauses: statements, passives, orders, coordination, facts about time and weather."""

    def statement(self) -> tuple[Sides, str]:
        """A single main clause, with all sorts of first constituents."""
        verb, frame = self.pick()
        subject = self.subject(frame)
        clause = self.clause(verb, frame, subject)
        self.set_tense(clause, frame, ("past", "present", "future", "modal"))
        self.negate(clause, 0.16)
        self._special(clause, frame)
        self._note_clause(clause)
        return self.main_clause(clause), "."

    def liking(self) -> tuple[Sides, str]:
        """Something that somebody likes doing (gern)."""
        subject = self.someone(("ich", "du", "er", "sie", "wir"))
        clause, _ = self.person_clause(subject, self.named(GLADLY))
        if any(a.kind == "A" and a.np and a.np.definite for a in clause.arguments):
            raise Rejected
        if any(isinstance(a.np, Nominal) and a.np.determiner.startswith("num:") for a in clause.arguments):
            raise Rejected
        clause.likes = True
        self.note("gern")
        self._note_clause(clause)
        return self.main_clause(clause), "."

    def _special(self, clause: Clause, frame: Frame) -> None:
        """Now and then the perfect with schon, or gern."""
        if (
            clause.negated
            and clause.tense in PAST
            and not clause.time
            and (clause.kein is None and self.rng.chance(0.3) and not frame.marks & {"state"})
        ):
            clause.tense = "already"
        elif (
            clause.tense in PAST
            and not clause.time
            and not clause.negated
            and (clause.argument("A") is not None and not frame.marks & {"state", "event"} and self.rng.chance(0.3))
        ):
            clause.tense, clause.manner, clause.place = "already", "", None
            clause.companion = None
        elif (
            clause.tense == "pres"
            and not clause.negated
            and clause.frequency is not None
            and not frame.marks & {"state", "event"}
            and self.rng.chance(0.9)
            and clause.verb.lemma in GLADLY
            and not any(a.kind == "A" and a.np and a.np.definite for a in clause.arguments)
        ):
            clause.frequency, clause.likes = None, True
            self.note("gern")

    def passive_statement(self) -> tuple[Sides, str]:
        """A passive main clause."""
        clause = self.passive_clause()
        self._note_clause(clause)
        return self.main_clause(clause), "."

    def order(self) -> tuple[Sides, str]:
        """An imperative to du, ihr or Sie."""
        who = self.rng.choice(("du", "ihr", "Sie"))
        verb, frame = self.pick(("imp",))
        clause = self.clause(verb, frame, Pronoun(who))
        if verb.lemma not in ORDERED_NEW and any(
            arg.np is not None and not arg.np.definite for arg in clause.arguments
        ):
            raise Rejected
        clause.companion = None
        clause.polite = self.rng.chance(0.55)
        if verb.lemma in FORBIDDEN:
            self.negate(clause, 0.35)
        if not clause.negated and self.rng.chance(0.2):
            fitting = [t for t in TIME_WORDS if "modal" in t.tenses]
            when = self.rng.balanced(fitting, [t.german for t in fitting])
            clause.time = Adverbial("time", *linked(when.german, when.english, when.links))
        self._note_clause(clause)
        self.nest(f"imperative-{who}", clause)
        english = clause.english_base()
        if clause.negated:
            kein = clause.kein
            link = kein.determiner_link if kein is not None else clause.not_link
            english = [*words("do", maybe=(clause.finite,)), *words("not", link), *english]
        if clause.polite:
            english = [*words("please", clause.please), *english]
        return (clause.german_imperative(who), english), self.rng.choice((".", "!"))

    def coordination(self) -> tuple[Sides, str]:
        """und, aber, denn, oder between clauses, predicates or noun phrases."""
        kind = self.rng.weighted([("predicates", 3.0), ("clauses", 3.0), ("adversative", 2.0), ("phrases", 3.0)])
        if kind == "phrases":
            return self._two_people()
        subject = self.someone()
        first, _ = self.person_clause(subject)
        related = self.related(first.verb)
        if kind == "predicates":
            second, _ = self.person_clause(subject, related)
        elif kind == "clauses":
            other = self.subject_noun(("person",))
            second, _ = self.person_clause(other, related)
            self._distinct(subject, other)
        else:
            second, _ = self.person_clause(self.same_person(subject), related)
        if first.verb.lemma == second.verb.lemma:
            raise Rejected
        tense = self.rng.weighted([("pret", 3.0), ("perf", 3.0), ("fut", 1.5)])
        for clause in (first, second):
            clause.tense = tense
            clause.manner = ""
        if tense == "pret" and subject.person.startswith("2"):
            raise Rejected
        if tense != "fut" and self.rng.chance(0.4):
            first.time = self.time("past")
        elif tense == "fut":
            first.time = self.time("future")
        self._note_clause(first)
        link = anchor()
        if kind == "adversative":
            second.place = second.companion = None
            self.negate(second, 1.0)
            if not second.negated:
                raise Rejected
        self._note_clause(second)
        self.nest(f"coordination-{kind}", second)
        front = "time" if first.time else "subject"
        english = first.english_declarative(without=("time",))
        if first.time:
            english = [*first.time.english, *english]
        if kind == "predicates" and tense == "perf" and first.verb.aux == second.verb.aux:
            first.sharing = (second.v,)
        left = first.german_main(front)
        if kind == "predicates":
            return self._share_subject(first, second, left, english, link), "."
        word, en_word = ("aber", "but") if kind == "adversative" else ("und", "and")
        comma = [COMMA]
        german = [*left, *(comma if word == "aber" else []), *words(word, link), *second.german_main()]
        english = [*english, COMMA, *words(en_word, link), *second.english_declarative()]
        return (german, english), "."

    def _share_subject(
        self, first: Clause, second: Clause, left: list[Token], english: list[Token], link: int
    ) -> Sides:
        """Both predicates have one subject (and, where it is the same, one auxiliary)."""
        if first.time:
            # Ellipsis after inversion reads badly in German, so repeat nothing and avoid it.
            raise Rejected
        same = second.tense == "fut" or (second.tense == "perf" and first.verb.aux == second.verb.aux)
        predicate = second.german_after(("subject",))
        german = [*left, *words("und", link), *(predicate[1:] if same else predicate)]
        further = second.english_declarative(subject=[])
        if second.tense == "fut":
            further = further[1:]  # one will is enough
        return german, [*english, *words("and", link), *further]

    def _two_people(self) -> tuple[Sides, str]:
        """Two people as one subject, or two things as one object."""

        def fits(frame: Frame) -> bool:
            return "person" in frame.subject

        verb, frame = self.pick(avoid=("event", "swap"), test=fits)
        one, two = self.name(), self.subject_noun(("kin", "Freund", "Freundin", "Nachbar"))
        if two.determiner == "def":
            two.determiner = self.rng.choice(("mein", "dein", "unser"))
        subject: NounPhrase = Enumeration(one, two)
        if self.rng.chance(0.4):
            other = self.name()
            self._distinct(one, other)
            if len(one.german("nom")) != len(other.german("nom")):
                raise Rejected
            subject = Enumeration(one, other)
        clause = self.clause(verb, frame, subject, pronouns=False)
        self.set_tense(clause, frame, ("past", "present", "future", "modal"))
        self._note_clause(clause)
        self.nest("coordination-phrases", clause)
        return self.main_clause(clause), "."

    def since(self) -> tuple[Sides, str]:
        """seit with the present, which English says in the perfect."""
        number = self.rng.balanced(list(NUMBERS), list(NUMBERS))
        unit = self.rng.choice(("Jahr", "Monat", "Woche"))
        german_unit, english_unit = NUMERAL_UNITS[unit]
        german, english = linked(f"seit {number} {german_unit}", f"for {NUMBERS[number]} {english_unit}", "0-0 1-1 2-2")

        def fits(frame: Frame) -> bool:
            return frame.text in SINCE_FRAMES

        verb, frame = self.pick(test=fits)
        clause = self.clause(verb, frame, self.subject(frame), plain=True, pronouns=False)
        clause.tense = "since"
        clause.time = Adverbial("time", german, english)
        self._note_clause(clause)
        self.nest("since", clause)
        if self.rng.chance(0.7):
            return (clause.german_main(), clause.english_declarative()), "."
        tail = clause.english_declarative(without=("time",))
        return (clause.german_main("time"), [*english, *tail]), "."

    def small_facts(self) -> tuple[Sides, str]:
        """The weather, what hurts, what happens when."""
        if self.rng.chance(0.55):
            noun, _ = self.noun(("body",))
            who = self.rng.choice(("ich", "du", "er", "sie", "wir"))
            if who == "wir":
                who = "ich"
            owner = {"ich": "mein", "du": "dein", "er": "sein", "sie": "ihr_her"}[who]
            pronoun = Pronoun(who)
            np = Nominal(noun, owner)
            hurt = anchor()
            plural = noun.lemma in {"Fuß", "Bein", "Zahn", "Knie", "Arm"} and self.rng.chance(0.5)
            np = Nominal(noun, "def", plural)
            past = self.rng.chance(0.4)
            finite = {(False, False): "tut", (False, True): "tun", (True, False): "tat", (True, True): "taten"}[
                past, plural
            ]
            link = next(iter(pronoun.german("dat")[0].sure))
            english_noun = Nominal(noun, owner, plural)
            english_noun.link = np.link
            english_noun.determiner_link = link
            determiner = english_noun.english()
            determiner[0] = Token(determiner[0].text, frozenset({link}), frozenset({np.determiner_link}))
            german = [*pronoun.german("dat"), *words(finite, hurt), *np.german("nom"), *words("weh", hurt)]
            form = "hurt" if past or plural else "hurts"
            english = [*determiner, *words(form, hurt)]
            time = self.time("past") if past else None
            if time:
                german = [
                    *time.german,
                    *words(finite, hurt),
                    *pronoun.german("dat"),
                    *np.german("nom"),
                    *words("weh", hurt),
                ]
                english = [*time.english, *english]
            self.note("hurt")
            self.record.lemmas.add("weh tun")
            return (german, english), "."
        verb = self.rng.choice((RAIN, SNOW))
        clause = Clause(verb, Pronoun("es"))
        tense = self.rng.choice(("past", "future"))
        clause.tense = "fut" if tense == "future" else self.rng.choice(PAST)
        clause.time = self.time(tense)
        months = {*MONTHS, *SEASONS, *NUMERAL_UNITS, "Tagen", "Wochen", "Monaten", "Jahren"}
        if verb is SNOW and any(token.text in months for token in clause.time.german):
            raise Rejected
        if self.rng.chance(0.5):
            clause.place = self.whereabouts("city", False)
        clause.negated = clause.place is None and self.rng.chance(0.3)
        self._note_clause(clause)
        return self.main_clause(clause), "."
