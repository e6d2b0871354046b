"""Descriptions: copula, comparison, es gibt, haben."""

from __future__ import annotations

from corpus_de_en.clauses import Argument, Clause
from corpus_de_en.drawing import Sides
from corpus_de_en.lexicon.adjectives import Adjective
from corpus_de_en.lexicon.function_words import NUMBERS
from corpus_de_en.lexicon.nouns import NOUN, NOUNS, PART_OF
from corpus_de_en.lexicon.situations import EXCESSIVE, EXISTENCE, PRICES
from corpus_de_en.lexicon.verbs import BE, COST, HAVE, Slot
from corpus_de_en.patterns.relatives import Relatives
from corpus_de_en.phrases import Adverbial, Demonstrative, Modifier, Nominal, NounPhrase, Rejected, linked
from corpus_de_en.selection import FITTING, owns_object, same_sort
from corpus_de_en.tokens import anchor, words


class Descriptions(Relatives):
    """Descriptions: copula, comparison, es gibt, haben."""

    def describable(self) -> tuple[Nominal, Adjective]:
        """A definite noun phrase and an adjective that may be said of it."""
        choices = [noun for noun in NOUNS if FITTING[noun.lemma] and not noun.classes & {"body", "time", "money"}]
        noun = self.rng.balanced(choices, [n.lemma for n in choices])
        adjective = self._adjective(FITTING[noun.lemma])
        self.record.cells.add(f"adjective-noun:{adjective.lemma}|{noun.lemma}")
        options: list[tuple[str, float]] = [("def", 4.0), ("dies", 1.5)]
        if noun.classes & {"rel", "ownable", "pet"}:
            options.append(("poss", 3.0))
        if "kin" in noun.classes:
            options = [("poss", 1.0)]
        kind = self.rng.weighted(options)
        if kind == "poss":
            kind = self.rng.choice(("mein", "dein", "unser", "sein"))
            if "womens" in noun.classes:
                kind = self.rng.choice(("mein", "dein"))
        plural = not noun.mass and not noun.classes & {"kin", "room", "area", "spot"} and self.rng.chance(0.2)
        return Nominal(noun, kind, plural), adjective

    def predicate(self, adjective: Adjective, degree: str = "positive") -> Adverbial:
        """The adjective after *sein*, without endings."""
        link = anchor()
        german = adjective.german if degree == "positive" else adjective.comparative
        english = adjective.english if degree == "positive" else adjective.english_comparative
        notes = (adjective.lemma,)
        return Adverbial("complement", words(german, link, notes=notes), words(english, link))

    def description(self) -> tuple[Sides, str]:
        """Das Haus ist alt; the subject may have a genitive or a relative clause."""
        if self.rng.chance(0.2):
            part = NOUN[self.rng.choice(tuple(PART_OF))]
            np, adjective = Nominal(part), self._adjective(FITTING[part.lemma])
            self.genitive(np)
            self.record.cells.add(f"adjective-noun:{adjective.lemma}|{part.lemma}")
        else:
            np, adjective = self.describable()
            self._extend(np)
        tense = self.rng.weighted([("pres", 2.0), ("pret", 1.0)])
        clause = Clause(BE, np, tense=tense, complement=self.predicate(adjective))
        if self.rng.chance(0.15):
            clause.negated = True
        degree_words = [("sehr", "very"), ("ziemlich", "quite")]
        if adjective.lemma in EXCESSIVE:
            degree_words.append(("zu", "too"))
        if not clause.negated and adjective.graded and self.rng.chance(0.4):
            german, english = linked(*self.rng.choice(degree_words), "0-0")
            assert clause.complement is not None
            clause.complement = Adverbial(
                "complement", german + clause.complement.german, english + clause.complement.english
            )
        self.note(f"copula-{tense}")
        self.nest("copula", clause)
        if self.rng.chance(0.15):
            return (clause.german_after(), clause.english_question()), "?"
        return (clause.german_main(), clause.english_declarative()), "."

    def _extend(self, np: Nominal) -> None:
        """Perhaps add a genitive, a place or a relative clause."""
        kind = self.rng.weighted([("none", 4.0), ("genitive", 6.0), ("relative", 2.0)])
        if kind == "relative" and np.determiner == "def" and not np.noun.mass:
            self.relative(np)
        elif kind == "genitive" and np.determiner == "def" and not np.plural:
            self.genitive(np)

    def genitive(self, np: Nominal) -> None:
        """Add a possessor: Annas Auto, das Auto des Lehrers, das Dach des Hauses."""
        if np.noun.lemma in PART_OF:
            whole = NOUN[self.rng.choice(PART_OF[np.noun.lemma])]
            np.possessor = Nominal(whole, "def", False, self.modifiers(whole, 0.2))
            self.note("genitive-of-thing")
        elif np.noun.classes & {"ownable", "pet", "kin"}:
            if self.rng.chance(0.45):
                name = self.name()
                if len(name.german("nom")) > 1:
                    raise Rejected
                np.determiner, np.possessor = "name", name
                self.note("genitive-of-name")
            else:
                owner, _ = self.noun(("worker", "kid", "kin", "Freund", "Nachbar"))
                if "kin" in np.noun.classes and "kin" in owner.classes:
                    raise Rejected
                kind = "def"
                if "rel" in owner.classes and self.rng.chance(0.6):
                    kind = self.rng.choice(("mein", "dein", "unser"))
                np.possessor = Nominal(owner, kind, False)
                self.note("genitive-of-person")

    def comparison(self) -> tuple[Sides, str]:
        """älter als, so alt wie, das älteste."""
        np, adjective = self.describable()
        if not adjective.graded or np.noun.mass:
            raise Rejected
        kind = self.rng.choice(("als", "wie", "superlative"))
        self.note(f"comparison-{kind}")
        self.record.cells.add(f"nest:comparison-{kind}|{adjective.lemma}")
        if kind == "superlative":
            return self._superlative(np, adjective)
        if np.noun.classes & {"ownable", "pet"}:
            owners = ("mein", "dein") if "womens" in np.noun.classes else ("mein", "dein", "unser", "sein")
            one, two = self.rng.shuffled(owners)[:2]
            if {one, two} == {"mein", "unser"}:
                raise Rejected
            self.note("repetition")
            np.determiner = one
            return self._compare(kind, np, adjective, Nominal(np.noun, two, np.plural))
        if not np.noun.classes & {"person", "building", "show", "exam", "room", "booklike"}:
            raise Rejected
        members = [
            noun
            for noun in NOUNS
            if adjective in FITTING[noun.lemma]
            and noun.lemma != np.noun.lemma
            and same_sort(noun, np.noun)
            and not noun.mass
        ]
        if not members:
            raise Rejected
        other = self.rng.balanced(members, [m.lemma for m in members])
        if "kin" in other.classes:
            kind_det = self.rng.choice(("mein", "dein", "unser"))
        else:
            kind_det = "def"
        second = Nominal(other, kind_det, np.plural)
        self._distinct(np, second)
        return self._compare(kind, np, adjective, second)

    def _compare(self, kind: str, np: Nominal, adjective: Adjective, second: Nominal) -> tuple[Sides, str]:
        link = anchor()
        if kind == "als":
            predicate = self.predicate(adjective, "comparative")
            german = [*predicate.german, *words("als", link), *second.german("nom")]
            english = [*predicate.english, *words("than", link), *second.english()]
        else:
            predicate = self.predicate(adjective)
            so, wie = linked("so wie", "as as", "0-0 1-1")
            german = [so[0], *predicate.german, so[1], *second.german("nom")]
            english = [wie[0], *predicate.english, wie[1], *second.english()]
        clause = Clause(
            BE,
            np,
            tense=self.rng.weighted([("pres", 3.0), ("pret", 1.0)]),
            complement=Adverbial("complement", german, english),
        )
        if kind == "wie" and self.rng.chance(0.4):
            clause.negated = True
        return (clause.german_main(), clause.english_declarative()), "."

    def _superlative(self, np: Nominal, adjective: Adjective) -> tuple[Sides, str]:
        noun = np.noun
        if noun.plural_only or "kin" in noun.classes:
            raise Rejected
        modifier = Modifier(adjective, noun, "superlative")
        predicate = Nominal(noun, "def", False, [modifier])
        link = anchor()
        clause = Clause(BE, Demonstrative(noun), tense="pres")
        scope: Sides
        if "person" in noun.classes or self.rng.chance(0.5):
            city = self.region("city")
            scope = ([*words("in", link), *city.german("dat")], [*words("in", link), *city.english()])
            if noun.classes & {"fruit", "dish", "food", "drink", "ware"}:
                scope = ([], [])
        else:
            scope = ([], [])
        if not noun.classes & {"person", "animal", "building", "sight", "area", "room", "house"}:
            scope = ([], [])
        clause.complement = Adverbial("complement", predicate.german("nom") + scope[0], predicate.english() + scope[1])
        return (clause.german_main(), clause.english_declarative()), "."

    def existence(self) -> tuple[Sides, str]:
        """Es gibt ..."""
        place_group = self.rng.choice(tuple(EXISTENCE))
        lemma = self.rng.balanced(EXISTENCE[place_group], EXISTENCE[place_group])
        noun = NOUN[lemma]
        plural = self.rng.chance(0.5) and not noun.mass
        determiner = "zero" if noun.mass else "indef"
        kind = self.rng.weighted([("plain", 3.0), ("num", 1.0), ("many", 1.0), ("kein", 1.0)])
        if kind == "num" and not noun.mass:
            number = self.rng.balanced(list(NUMBERS), list(NUMBERS))
            determiner, plural = f"num:{number}={NUMBERS[number]}", True
        elif kind == "many" and not noun.mass:
            determiner, plural = "many", True
        elif kind == "kein":
            determiner = "kein"
        modifiers = [] if kind == "kein" else self.modifiers(noun, 0.4)
        np = Nominal(noun, determiner, plural, modifiers)
        np.no_means_no = True
        place = self.whereabouts(place_group, False, definite=True)
        past = self.rng.chance(0.35)
        question = kind != "kein" and self.rng.chance(0.15)
        verb, there = anchor(), anchor()
        gibt = words("gab" if past else "gibt", verb)
        es = words("es", there)
        plural_be = np.person == "3p"
        be = words(("were" if past else "are") if plural_be else ("was" if past else "is"), verb)
        there_word = words("there", there)
        self.note("es-gibt")
        self.record.cells.add(f"nest:es-gibt|{place_group}-{'past' if past else 'present'}")
        self.record.cells.add(f"verb-object:geben (es)|{lemma}")
        body = np.german("acc")
        english_rest = [*np.english(), *place.english]
        if question:
            return ([*gibt, *es, *place.german, *body], [*be, *there_word, *english_rest]), "?"
        english = [*there_word, *be, *english_rest]
        if self.rng.chance(0.5):
            return ([*place.german, *gibt, *es, *body], english), "."
        return ([*es, *gibt, *place.german, *body], english), "."

    def possession(self) -> tuple[Sides, str]:
        """haben; whose thing it is; what it costs; how old somebody is."""
        kind = self.rng.weighted([("have", 3.0), ("genitive", 3.0), ("cost", 1.5), ("age", 1.5)])
        if kind == "have":
            subject = self.someone(("ich", "du", "er", "sie", "wir", "ihr"))
            np = self.object(("ownable", "pet", "Idee", "Plan", "Frage"), None)
            if np.definite:
                assert isinstance(np, Nominal)
                if np.noun.mass:
                    raise Rejected
                np.determiner = "indef"
            clause = Clause(HAVE, subject, [Argument(Slot("A", ()), np)])
            clause.tense = self.rng.weighted([("pres", 3.0), ("pret", 1.0)])
            if isinstance(np, Nominal) and np.determiner == "indef" and not np.modifiers and (self.rng.chance(0.4)):
                np.determiner, np.no_means_no = "kein", True
                clause.negated = True
            self._note_clause(clause)
            self.nest("have", clause)
            return (clause.german_main(), clause.english_declarative()), "."
        if kind == "genitive":
            verb, frame = self.pick(test=owns_object)
            subject = self.subject(frame)
            clause = self.clause(verb, frame, subject, plain=True, pronouns=False)
            self.set_tense(clause, frame, ("past", "present", "modal"), timed=0.3)
            arg = clause.argument("A")
            if arg is None or not isinstance(arg.np, Nominal):
                raise Rejected
            arg.np.determiner = "def"
            arg.np.definite = True
            if arg.np.plural:
                raise Rejected
            self.genitive(arg.np)
            if arg.np.possessor is None:
                raise Rejected
            self._distinct(subject, arg.np.possessor)
            self._note_clause(clause)
            self.nest("genitive-object", clause)
            return (clause.german_main(), clause.english_declarative()), "."
        if kind == "cost":
            noun, _ = self.noun(("goods", "Fahrkarte", "booklike"))
            np = Nominal(noun, self.rng.choice(("def", "dies")), False, self.modifiers(noun, 0.4))
            if noun.classes & {"letter", "sendable"}:
                raise Rejected
            if any(m.adjective.lemma in {"teuer", "billig", "wertvoll", "kaputt", "schmutzig"} for m in np.modifiers):
                raise Rejected
            big = noun.classes & {"furniture", "appliance", "instrument", "gadget"}
            price = self.rng.choice(PRICES[9:] if big else PRICES[:9])
            german, english = linked(f"{price} Euro", f"{price} euros", "0-0 1-1")
            clause = Clause(COST, np, complement=Adverbial("complement", german, english))
            clause.tense = self.rng.weighted([("pres", 2.0), ("perf", 0.7), ("pret", 1.0)])
            self._note_clause(clause)
            self.nest("price", clause)
            return (clause.german_main(), clause.english_declarative()), "."
        subject = self.someone(("ich", "er", "sie", "du"))
        if subject.person.endswith("p") or (isinstance(subject, Nominal) and subject.determiner == "indef"):
            raise Rejected
        if isinstance(subject, Nominal) and any(
            modifier.adjective.lemma in {"alt", "jung", "klein"} for modifier in subject.modifiers
        ):
            raise Rejected
        number = str(self._age(subject))
        german, english = linked(f"{number} Jahre alt", f"{number} years old", "0-0 1-1 2-2")
        clause = Clause(BE, subject, complement=Adverbial("complement", german, english))
        self.note("age")
        return (clause.german_main(), clause.english_declarative()), "."

    def _age(self, subject: NounPhrase) -> int:
        """An age that suits the person."""
        low, high = 18, 80
        if isinstance(subject, Nominal):
            if "kid" in subject.noun.classes:
                low, high = 5, 16
            elif subject.noun.lemma.startswith("Groß"):
                low, high = 60, 95
            elif "kin" in subject.noun.classes:
                low, high = 30, 55
        return low + self.rng.choice(range(high - low))
