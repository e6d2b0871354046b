"""Infinitive clauses with zu, um ... zu and ohne ... zu."""

from __future__ import annotations

from corpus_de_en.clauses import Clause, comma_join
from corpus_de_en.drawing import PAST, Drawing, Sides
from corpus_de_en.lexicon.situations import DURATIVE, ERRANDS, EVALUATIONS, JOURNEYS, OMITTED, SHOPPING, UNFORGETTABLE
from corpus_de_en.lexicon.verbs import CONTROL, Frame
from corpus_de_en.phrases import Nominal, NounPhrase, Pronoun, Rejected
from corpus_de_en.tokens import COMMA, anchor, words


class Infinitives(Drawing):
    """Infinitive clauses with zu, um ... zu and ohne ... zu."""

    def infinitive_clause(self) -> tuple[Sides, str]:
        """versuchen, vergessen, beschließen ... zu; es ist wichtig, ... zu."""
        if self.rng.chance(0.3):
            return self._it_is()
        verb = self.rng.balanced(CONTROL, [v.lemma for v in CONTROL])
        subject = self.someone(("ich", "er", "sie", "wir", "du"))
        test = self.named(DURATIVE) if verb.lemma == "anfangen" else None
        inner, _ = self.person_clause(subject, test)
        if inner.verb.lemma in {"sitzen", "stehen", "liegen", "wohnen"}:
            raise Rejected
        if verb.lemma == "versuchen" and inner.verb.lemma == "anprobieren":
            raise Rejected  # nobody tries to try on
        if verb.lemma == "vergessen" and inner.verb.lemma in UNFORGETTABLE:
            raise Rejected
        outer = Clause(verb, subject)
        self._past(outer)
        if verb.lemma == "hoffen" or (verb.lemma == "planen" and self.rng.chance(0.5)):
            outer.tense = "pres"
        self.record.lemmas.add(verb.lemma)
        self._note_clause(outer)
        self._note_clause(inner)
        if self.rng.chance(0.3):
            outer.time = self.time("past") if outer.tense in PAST else None
        self.nest("infinitive-zu", inner)
        german = comma_join(outer.german_main(), inner.german_zu())
        # The time belongs to the main verb, so English says it first to keep it there.
        if outer.time:
            english = [*outer.time.english, *outer.english_declarative(without=("time",))]
            german = comma_join(outer.german_main("time"), inner.german_zu())
        else:
            english = outer.english_declarative()
        return (german, [*english, *inner.english_to()]), "."

    def _it_is(self) -> tuple[Sides, str]:
        subject = Pronoun("er")
        inner, _ = self.person_clause(subject)
        if inner.verb.lemma in {"sitzen", "stehen", "liegen", "setzen (sich)"}:
            raise Rejected
        for arg in inner.arguments:
            if isinstance(arg.np, Nominal) and arg.np.determiner in {"sein"}:
                raise Rejected
            if arg.kind == "R":
                raise Rejected
        if inner.companion is not None:
            raise Rejected
        german, english = self.rng.choice(EVALUATIONS)
        tense = self.rng.choice(("pres", "pret"))
        outer = self.state(Pronoun("es"), german, english, tense)
        self._note_clause(inner)
        self.nest("infinitive-es-ist", inner)
        return (
            comma_join(outer.german_main(), inner.german_zu()),
            [*outer.english_declarative(), *inner.english_to()],
        ), "."

    def purpose(self) -> tuple[Sides, str]:
        """Going somewhere um ... zu; leaving ohne ... zu."""
        subject = self.someone(("ich", "er", "sie", "wir"))
        if self.rng.chance(0.3):
            return self._without(subject)

        def goes(frame: Frame) -> bool:
            return any(slot.kind == "TO" for slot in frame.slots) and len(frame.slots) == 1

        outer, frame = self.person_clause(subject, goes, avoid=("event",))
        if outer.verb.lemma in {"reiten", "umziehen"}:
            raise Rejected
        outer.companion, outer.manner = None, ""
        self.set_tense(outer, frame, ("past", "future", "modal"), timed=0.4)

        goal = outer.argument("TO")
        assert goal is not None
        assert goal.adverbial is not None
        lemmas = {note for token in goal.adverbial.german for note in token.notes}
        if lemmas & {"Supermarkt", "Markt"}:
            allowed = SHOPPING
        else:
            allowed = ERRANDS if lemmas else JOURNEYS

        def errand(candidate: Frame) -> bool:
            return candidate.verb in allowed and not any(slot.kind == "AT" for slot in candidate.slots)

        inner, _ = self.person_clause(subject, errand, avoid=())
        inner.place, inner.companion, inner.manner = None, None, ""
        self._note_clause(outer)
        self._note_clause(inner)
        self.nest("infinitive-um-zu", inner)
        um = words("um", maybe=(inner.aux,))
        front = "time" if outer.time else "subject"
        german = [*outer.german_main(front), COMMA, *um, *inner.german_zu()]
        english = outer.english_declarative(without=("time",))
        if outer.time:
            english = [*outer.time.english, *english]
        return (german, [*english, *inner.english_to()]), "."

    def _without(self, subject: NounPhrase) -> tuple[Sides, str]:
        def leaves(frame: Frame) -> bool:
            return frame.verb in {"verlassen", "gehen", "laufen"}

        outer, _ = self.person_clause(subject, leaves)
        outer.tense = "perf" if self.rng.chance(0.5) else "pret"

        def omitted(frame: Frame) -> bool:
            return frame.verb in OMITTED and "AT" not in {slot.kind for slot in frame.slots}

        inner, _ = self.person_clause(subject, omitted, avoid=("state", "event"))
        inner.place, inner.companion, inner.manner = None, None, ""
        for arg in inner.arguments:
            if arg.np is not None and not arg.np.definite:
                raise Rejected
        self._note_clause(outer)
        self._note_clause(inner)
        self.nest("infinitive-ohne-zu", inner)
        link = anchor()
        german = [*outer.german_main(), COMMA, *words("ohne", link), *inner.german_zu()]
        english = [*outer.english_declarative(), *words("without", link), *inner.english_ing()]
        return (german, english), "."
