"""Long sentences: several predicates, enumerations, and clauses before, inside and after others."""

from __future__ import annotations

from collections.abc import Sequence

from corpus_de_en.clauses import Argument, Chain, Clause, subordinate
from corpus_de_en.drawing import Sides
from corpus_de_en.lexicon.function_words import MONTHS, NUMBERS
from corpus_de_en.lexicon.nouns import NOUN
from corpus_de_en.lexicon.situations import (
    DURATIVE,
    FAMILIAR,
    INDOORS,
    LISTABLE,
    MANY_AT_ONCE,
    OVERLAPPING,
    PLEASURES,
    REASONS,
    SCENES,
    TEMPORAL,
    TOO_LONG,
    TOO_SHORT,
)
from corpus_de_en.lexicon.verbs import HAVE, RAIN, SAYING, VERBS, Slot, Verb
from corpus_de_en.patterns.relatives import Relatives
from corpus_de_en.patterns.subordination import Subordination
from corpus_de_en.phrases import (
    POSSESSIVES,
    Adverbial,
    Enumeration,
    Nominal,
    NounPhrase,
    Pronoun,
    Rejected,
    linked,
    listed,
)
from corpus_de_en.selection import is_child, same_sort
from corpus_de_en.tokens import COMMA, anchor, words

CONNECTIVES = {**TEMPORAL, **REASONS, "denn": "because"}

HELP = next(verb for verb in VERBS if verb.lemma == "helfen")


class LongSentences(Subordination, Relatives):
    """Long sentences: several predicates, enumerations, and clauses before, inside and after others."""

    _verbs: set[str]
    """The verbs of the sentence being drawn, in both languages."""

    # ------------------------------------------------------------------------------- who

    def _person(self) -> Nominal:
        """A familiar person, as a full noun phrase."""
        noun, plural = self.noun(FAMILIAR)
        kind = self.rng.choice(("mein", "unser")) if "rel" in noun.classes else "def"
        return Nominal(noun, kind, plural, [] if "kin" in noun.classes else self.modifiers(noun, 0.2))

    def _several(self) -> Enumeration:
        """Two or three people or groups of people."""
        items: list[NounPhrase] = [self.name() if self.rng.chance(0.4) else self._person()]
        items += [self._person() for _ in range(self.rng.choice((1, 1, 2)))]
        last, _ = self.noun(("kid", "Student", "Studentin", "Freund", "Freundin"))
        if self.rng.chance(0.35):
            number = self.rng.balanced(list(NUMBERS)[:5], list(NUMBERS)[:5])
            self.note("numeral")
            items.append(Nominal(last, f"num:{number}={NUMBERS[number]}", True))
        self._distinct(*items)
        self.note("enumeration")
        return Enumeration(*items)

    def _described(self) -> Nominal:
        """Somebody with a relative clause."""
        noun, plural = self.noun(("adult", "kid"))
        if "kin" in noun.classes or noun.lemma in {"König", "Königin", "Leute"}:
            raise Rejected
        head = Nominal(noun, "def", plural, self.modifiers(noun, 0.2))
        inner = self.relative(head)
        if inner.time is not None and inner.tense != "pres":
            raise Rejected  # its time would compete with that of the main clause
        return head

    def _hero(self) -> NounPhrase:
        kind = self.rng.weighted([("one", 3.0), ("name", 1.5), ("several", 2.5), ("described", 3.0)])
        if kind == "name":
            return self.name()
        return {"one": self._person, "several": self._several, "described": self._described}[kind]()

    # ------------------------------------------------------------------------------ what

    def _act(self, subject: NounPhrase, lemmas: frozenset[str], tense: str) -> Clause:
        """Something that somebody does, with one of the verbs ``lemmas``."""
        clause, _ = self.person_clause(subject, self.named(lemmas))
        clause.tense, clause.manner = tense, ""
        if isinstance(subject, Enumeration) or subject.person == "3p":
            clause.companion = None
        direct = clause.argument("A")
        if any(isinstance(arg.np, Nominal) and self._is_vague(arg.np) for arg in clause.arguments):
            raise Rejected
        if clause.verb.lemma == "kochen":
            clause.place = None
        if direct is not None and isinstance(direct.np, Nominal):
            self._check_everyday(clause.verb, direct.np, subject)
            self._pluralise(direct.np, subject)
        if clause.argument("TO") is not None and self.rng.chance(0.7):
            self._add_stops(clause)
        elif "enumeration" not in self.record.patterns and self.rng.chance(0.35):
            self._lengthen(clause)
        return clause

    @staticmethod
    def _is_vague(np: Nominal) -> bool:
        """True if it is open whose relative is meant."""
        return "kin" in np.noun.classes and np.determiner == "def"

    @staticmethod
    def _check_everyday(verb: Verb, np: Nominal, subject: NounPhrase) -> None:
        """Raise for an unusual act: packing eleven bags, buying a sofa by the way."""
        noun, together = np.noun, subject.person.endswith("p")
        counted = np.determiner.startswith("num:")
        odd = (
            (counted and (verb.lemma == "packen" or np.animate))
            or (counted and verb.lemma == "kaufen" and "food" not in noun.classes)
            or (verb.lemma == "kaufen" and "furniture" in noun.classes)
            or (verb.lemma == "nähen" and any(m.adjective.lemma in {"sauber", "schmutzig"} for m in np.modifiers))
            or (isinstance(subject, Enumeration) and "kin" in noun.classes and np.determiner in POSSESSIVES)
            or (together and noun.lemma == "Liebesbrief")
            or (together and "womens" in noun.classes and np.determiner in POSSESSIVES)
            or (is_child(subject) and "alcohol" in noun.classes)
        )
        if odd:
            raise Rejected

    @staticmethod
    def _pluralise(np: Nominal, subject: NounPhrase) -> None:
        """Nobody washes one fork or cooks one onion, and two people do not wear one skirt."""
        if np.determiner not in {"def", "indef", "dies", *POSSESSIVES} or np.noun.mass:
            return
        shared = (
            subject.person.endswith("p") and np.determiner in POSSESSIVES and np.noun.classes & {"cloth", "luggage"}
        )
        if shared or np.noun.classes & {"tableware", "fruit"} or np.noun.lemma in MANY_AT_ONCE:
            np.plural, np.person = True, "3p"

    def _when(self, scene: str) -> Adverbial:
        """A past time that is right for all that happens in a scene."""
        when = self.time("past")
        unfit = TOO_SHORT if scene == "travel" else TOO_LONG
        texts = {token.text for token in when.german}
        if "Uhr" in texts or texts & unfit or (len(texts) == 2 and texts & set(MONTHS)):
            raise Rejected
        return when

    def _add_stops(self, clause: Clause) -> None:
        """Make the goal of a journey a list."""
        goal = clause.argument("TO")
        if goal is None or goal.slot.classes[0] not in {"city", "country"}:
            return
        stops = [self.whereabouts(goal.slot.classes[0], True) for _ in range(self.rng.choice((2, 3)))]
        if len({stop.german[-1].text for stop in stops}) < len(stops):
            raise Rejected
        goal.adverbial = self._listed(stops)
        self.note("enumeration-places")

    def _lengthen(self, clause: Clause) -> None:
        """Make the object a list."""
        direct = clause.argument("A")
        if clause.verb.lemma not in LISTABLE or direct is None or not isinstance(direct.np, Nominal):
            return
        first = direct.np
        items = [first]
        for _ in range(self.rng.choice((1, 2))):
            other = self.object(direct.slot.classes, clause.subject, numbers=True)
            if not isinstance(other, Nominal) or not same_sort(first.noun, other.noun):
                raise Rejected
            self._check_sense(clause.verb, other, direct.slot)
            self._check_everyday(clause.verb, other, clause.subject)
            if self._is_vague(other):
                raise Rejected
            self._pluralise(other, clause.subject)
            if other.definite != first.definite or "dies" in {first.determiner, other.determiner}:
                raise Rejected
            items.append(other)
        self._distinct(*items)
        bare = any(item.determiner == "indef" and item.plural for item in items)
        if bare and any(item.determiner.startswith("num:") for item in items):
            raise Rejected  # vier Kleider und Blusen
        if len({t.text for np in items for t in np.german("acc")[-1:]}) < len(items):
            raise Rejected
        direct.np = Enumeration(*items)
        self.note("enumeration")

    def _listed(self, adverbials: Sequence[Adverbial]) -> Adverbial:
        """to Berlin, to Cologne and to Vienna."""
        link = anchor()
        return Adverbial(
            adverbials[0].kind,
            listed([adverbial.german for adverbial in adverbials], words("und", link)),
            listed([adverbial.english for adverbial in adverbials], words("and", link)),
        )

    def _stages(self, scene: str, count: int) -> list[frozenset[str]]:
        """So many stages of a scene, in their order."""
        stages = SCENES[scene]
        if count > len(stages):
            raise Rejected
        chosen = sorted(self.rng.shuffled(range(len(stages)))[:count])
        if scene == "travel" and not {1, 2} & set(chosen):
            raise Rejected  # packed, but went nowhere
        return [stages[index] for index in chosen]

    def _chain(self, subject: NounPhrase, stages: Sequence[frozenset[str]], tense: str, modal: str = "") -> Chain:
        """Several things that somebody does one after the other."""
        clauses = [self._act(subject, stage, tense) for stage in stages]
        if modal == "müssen" and any(clause.verb.lemma in PLEASURES for clause in clauses):
            raise Rejected
        for clause in clauses:
            clause.modal, clause.modal_tense = modal, "pret"
        for clause in clauses[1:]:
            clause.place = clause.companion = None
        self._remember(*clauses)
        if len(clauses) > 1:
            for clause in clauses:
                self.nest("chain", clause)
        return Chain(clauses)

    def _remember(self, *clauses: Clause) -> None:
        """Note the clauses; raise if a verb comes twice in the sentence, in either language."""
        for clause in clauses:
            self._note_clause(clause)
            for name in (f"de {clause.verb.full_infinitive}", f"en {clause.verb.english}"):
                if name in self._verbs:
                    raise Rejected
                self._verbs.add(name)

    # ----------------------------------------------------------------------------- tails

    @staticmethod
    def _but(left: Sides, right: Sides) -> Sides:
        """Two main clauses with aber."""
        link = anchor()
        return ([*left[0], COMMA, *words("aber", link), *right[0]], [*left[1], COMMA, *words("but", link), *right[1]])

    def _because(self, conjunction: str, clause: Clause) -> Sides:
        """A reason or the like at the end; denn has the order of a main clause."""
        self.nest(f"clause-{conjunction}", clause)
        english = CONNECTIVES[conjunction]
        if conjunction != "denn":
            german, right = subordinate((conjunction, english), clause)
            return [COMMA, *german, COMMA], right
        link = anchor()
        return (
            [COMMA, *words("denn", link), *clause.german_main(), COMMA],
            [*words(english, link), *clause.english_declarative()],
        )

    def _excuse(self, subject: NounPhrase) -> Sides:
        """... because he was ill, because he had no time."""
        conjunction = self.rng.choice(("denn", "denn", "weil"))
        reason = self.circumstance(subject, self.rng.choice(("state", "lack")))
        self._note_clause(reason)
        return self._because(conjunction, reason)

    def _circumstances(self, subject: NounPhrase, scene: str, acts: Sequence[Clause]) -> Sides:
        """Why, or in spite of what, the acts were done."""
        kinds = [("obwohl", "state"), ("obwohl", "lack")]
        if scene != "travel":
            kinds.append(("weil", "time"))
        kinds += [("weil", "fine"), ("denn", "fine")] if scene == "garden" else []
        kinds += [("obwohl", "weather")] if scene in {"garden", "travel"} else []
        kinds += [("weil", "weather"), ("denn", "weather")] if scene == "home" else []
        conjunction, which = self.rng.choice(kinds)
        if scene == "home" and which == "weather" and any(clause.place for clause in acts):
            raise Rejected  # read in the park because it rained
        if which == "time":
            clause = Clause(HAVE, subject, [Argument(Slot("A", ()), Nominal(NOUN["Zeit"], "zero"))], tense="pret")
        elif which == "fine":
            clause = self.state(Nominal(NOUN["Wetter"]), "schön", "nice", "pret")
        else:
            clause = self.circumstance(subject, which)
        self._note_clause(clause)
        return self._because(conjunction, clause)

    def _helper(self, hero: NounPhrase) -> tuple[Clause, NounPhrase]:
        """Somebody else helps (the clause has to be given its tense)."""
        other = self._person()
        if other.german_gender == hero.german_gender:
            raise Rejected
        self._distinct(hero, other)
        helped = Argument(Slot("D", ("person",)), self.same_person(hero))
        return Clause(HELP, other, [helped], tense="pret"), other

    def _no_help(self, hero: NounPhrase) -> Sides:
        """... could not help him because she was ill."""
        clause, other = self._helper(hero)
        clause.tense, clause.modal, clause.modal_tense = "modal", "können", "pret"
        clause.negated = True
        self._remember(clause)
        self.nest("coordination-adversative", clause)
        excuse = self._excuse(self.same_person(other))
        return ([*clause.german_main(), *excuse[0]], [*clause.english_declarative(), *excuse[1]])

    def _tail(
        self, left: Sides, hero: NounPhrase, scene: str, acts: Sequence[Clause], spare: Sequence[frozenset[str]]
    ) -> Sides:
        """The end of a story in the past: ``acts`` are its clauses so far, ``spare`` the stages that it left out."""
        kind = self.rng.weighted(
            [
                ("circumstances", 4.0),
                ("no-help", 0.0 if acts[-1].verb.lemma in PLEASURES else 5.0),
                ("while", 1.5),
                ("before", 2.0 if spare else 0.0),
                ("none", 3.0),
            ]
        )
        if kind == "none":
            return left
        if kind == "no-help":
            return self._but(left, self._no_help(hero))
        if kind == "while":
            other = self._person()
            self._distinct(hero, other)
            idle = SCENES["home"][3] | {"schlafen", "fernsehen"}
            if scene == "travel":
                idle = frozenset({"arbeiten"})
            clause = self._act(other, idle & DURATIVE, "while")
            self._remember(clause)
            end = self._because("während", clause)
        elif kind == "before":
            clause = self._act(self.same_person(hero), spare[-1], "pret")
            self._remember(clause)
            end = self._because("bevor", clause)
        else:
            end = self._circumstances(self.same_person(hero), scene, acts)
        return [*left[0], *end[0]], [*left[1], *end[1]]

    # -------------------------------------------------------------------------- sentences

    def long_sentence(self) -> tuple[Sides, str]:
        """One of the long patterns."""
        self._verbs = set()
        pattern = self.rng.weighted(
            [
                (self._story, 7.0),
                (self._report, 5.0),
                (self._meanwhile, 2.0),
                (self._weather_plan, 2.0),
                (self._division, 3.5),
            ]
        )
        german, english = pattern()
        lemmas = {note for token in german for note in token.notes}
        if any(lemmas.issuperset(pair) for pair in OVERLAPPING):
            raise Rejected
        return (german, english), "."

    def _setting(self) -> tuple[str, NounPhrase]:
        """A scene and somebody who may be in it."""
        scene, hero = self.rng.choice(sorted(SCENES)), self._hero()
        if scene == "office" and is_child(hero):
            raise Rejected
        return scene, hero

    def _story(self) -> Sides:
        """(After ...,) somebody did this, that and a third thing, and something about it."""
        scene, hero = self._setting()
        front = self.rng.chance(0.5)
        count = self.rng.choice((1, 2, 2, 3) if front else (2, 2, 3))
        reserve = 1 if self.rng.chance(0.5) else 0
        stages = self._stages(scene, front + count + reserve)
        when = self._when(scene)
        acts: list[Clause] = []
        if front:
            before = self._act(hero, stages[0], "plup")
            before.time = when
            self._remember(before)
            acts.append(before)
            chain = self._chain(self.same_person(hero), stages[1 : 1 + count], "pret")
            self.nest("clause-nachdem", before)
            self.note("front-clause")
            german, english = subordinate(("nachdem", "after"), before)
            left = ([*german, COMMA, *chain.german_after()], [*english, COMMA, *chain.english_declarative()])
        else:
            tense, modal = self.rng.weighted(
                [(("pret", ""), 4.0), (("perf", ""), 4.0), (("modal", "müssen"), 1.0), (("modal", "wollen"), 1.0)]
            )
            chain = self._chain(hero, stages[:count], tense, modal)
            chain.first.time = when
            place = "time" if self.rng.chance(0.5) else "subject"
            english = chain.english_declarative()
            if place == "time":
                english = [*when.english, *chain.english_declarative(without=("time",))]
                self.nest("front-time", chain.first)
            left = chain.german_main(place), english
        acts += chain.clauses
        return self._tail(left, hero, scene, acts, stages[front + count :])

    def _report(self) -> Sides:
        """Somebody says that somebody did this and that, and so on."""
        scene, hero = self._setting()
        pronoun = Pronoun(self.rng.choice(("ich", "er", "sie", "wir")))
        speaker = self.rng.choice((pronoun, self.name(), self._person()))
        self._distinct(speaker, hero)
        verbs = [
            verb
            for verb in SAYING
            if verb.lemma != "hoffen" and (verb.lemma not in {"sagen", "behaupten"} or speaker.person.startswith("3"))
        ]
        says = Clause(self.rng.balanced(verbs, [verb.lemma for verb in verbs]), speaker)
        self.record.lemmas.add(says.verb.lemma)
        tense = self.rng.choice(("pret", "perf"))
        stages = self._stages(scene, self.rng.choice((2, 2, 3)))
        chain = self._chain(hero, stages, tense)
        chain.first.time = self._when(scene)
        for clause in chain.clauses:
            self.nest("clause-dass", clause)
        that = subordinate(("dass", "that"), chain)
        german = [*says.german_main(), COMMA, *that[0]]
        english = [*says.english_declarative(), *that[1]]
        if self.rng.chance(0.6):
            reason = self._circumstances(self.same_person(hero), scene, chain.clauses)
            german, english = [*german, *reason[0]], [*english, *reason[1]]
        if chain.clauses[-1].verb.lemma not in PLEASURES and self.rng.chance(0.5):
            clause, _ = self._helper(hero)
            clause.tense = tense
            self._remember(clause)
            self.nest("clause-dass", clause)
            link = anchor()
            further = subordinate(("dass", "that"), clause)
            german = [*german, *words("und", link), *further[0]]
            english = [*english, *words("and", link), *further[1]]
        self._distinct_people(speaker, chain.first)
        return german, english

    def _meanwhile(self) -> Sides:
        """While one did this and another that, a third did something else."""
        one, two, hero = self._person(), self._person(), self._hero()
        self._distinct(one, two, hero)
        durative = frozenset().union(*SCENES["home"]) & DURATIVE
        first, second = self._act(one, durative, "while"), self._act(two, durative, "while")
        self._remember(first, second)
        chain = self._chain(hero, self._stages("home", self.rng.choice((1, 2))), "pret")
        self.nest("clause-während", first)
        self.nest("clause-während", second)
        self.note("front-clause")
        link = anchor()
        german, english = subordinate(("während", "while"), first)
        german = [*german, *words("und", link), *second.german_final()]
        english = [*english, *words("and", link), *second.english_declarative()]
        left = ([*german, COMMA, *chain.german_after()], [*english, COMMA, *chain.english_declarative()])
        if chain.clauses[-1].verb.lemma not in PLEASURES and self.rng.chance(0.7):
            return self._but(left, self._no_help(hero))
        return left

    def _weather_plan(self) -> Sides:
        """If the weather is nice, they will do this, but if it rains, they will do that."""
        hero = self._hero()
        fine = self.state(Nominal(NOUN["Wetter"]), *self.rng.choice((("schön", "nice"), ("gut", "good"))), "pres")
        fine.time = Adverbial(
            "time",
            *linked(
                *self.rng.choice(
                    (
                        ("am Wochenende", "at the weekend", "0-0 0-1 1-2"),
                        ("morgen", "tomorrow", "0-0"),
                        ("heute Abend", "this evening", "0-0 1-1"),
                    )
                )
            ),
        )
        rain = Clause(RAIN, Pronoun("es"))
        good = self._chain(hero, SCENES["garden"][self.rng.choice((1, 2)) : 3], "fut")
        inside = [stage & INDOORS for stage in self._stages("home", self.rng.choice((1, 2)))]
        bad = self._chain(self.same_person(hero), inside, "fut")
        bad.first.place = None
        self._note_clause(fine)
        self._note_clause(rain)
        self.nest("clause-wenn", fine)
        self.nest("beside-wenn", good.first)
        self.note("front-clause")
        link, second = anchor(), subordinate(("wenn", "if"), rain)
        german, english = subordinate(("wenn", "if"), fine)
        return (
            [*german, COMMA, *good.german_after(), COMMA, *words("aber", link), *second[0], COMMA, *bad.german_after()],
            [
                *english,
                COMMA,
                *good.english_declarative(),
                COMMA,
                *words("but", link),
                *second[1],
                COMMA,
                *bad.english_declarative(),
            ],
        )

    def _division(self) -> Sides:
        """One did this, another did that, and a third something else (but nobody could help)."""
        people = [self._person(), self._person(), self._hero()]
        if isinstance(people[-1], Enumeration):
            raise Rejected  # ... und Julia und ihr Vater ...: too many conjunctions
        self._distinct(*people)
        scene = self.rng.choice(("home", "garden", "office"))
        if scene == "office" and any(is_child(person) for person in people):
            raise Rejected
        stages = self._stages(scene, 3)
        tense = self.rng.choice(("pret", "perf"))
        clauses = [self._act(*pair, tense) for pair in zip(people, stages, strict=True)]
        when = self._when(scene)
        clauses[0].time = when
        self._remember(*clauses)
        self.nest("front-time", clauses[0])
        for clause in clauses:
            self.nest("coordination-three", clause)
        link = anchor()
        german = listed(
            [clauses[0].german_main("time"), *(clause.german_main() for clause in clauses[1:])], words("und", link)
        )
        first = [*when.english, *clauses[0].english_declarative(without=("time",))]
        english = listed(
            [first, *(clause.english_declarative() for clause in clauses[1:])], [COMMA, *words("and", link)]
        )
        if not any(clause.verb.lemma in PLEASURES for clause in clauses):
            they = Pronoun("they")
            return self._but((german, english), self._no_help(they))
        return german, english
