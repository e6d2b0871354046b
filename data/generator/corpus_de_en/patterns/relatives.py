"""Relative clauses in all cases, with prepositions, with a possessor, with a place."""

from __future__ import annotations

from corpus_de_en.clauses import Clause
from corpus_de_en.drawing import Drawing, Sides
from corpus_de_en.lexicon.nouns import PLACE_OF, WHEREABOUTS, Noun
from corpus_de_en.lexicon.situations import FIXED_PREPOSITION, TIMED, YOUNGER
from corpus_de_en.lexicon.verbs import Frame
from corpus_de_en.phrases import Nominal, NounPhrase, Possessed, Rejected, Relative
from corpus_de_en.selection import accepts, frames_with, is_child
from corpus_de_en.tokens import COMMA, Token, anchor, words


class Relatives(Drawing):
    """Relative clauses in all cases, with prepositions, with a possessor, with a place."""

    _pronouns: tuple[str, ...] = ()
    """The pronouns that may be the subject of the relative clause being drawn."""

    def relative_sentence(self) -> tuple[Sides, str]:
        """A sentence one of whose noun phrases has a relative clause."""
        verb, frame = self.pick()
        where = self.rng.choice(("subject", "object"))
        if where == "subject":
            subject: NounPhrase = self.subject_noun(frame.subject)
        else:
            subject = self.subject(frame)
        clause = self.clause(verb, frame, subject, plain=self.rng.chance(0.6), pronouns=False)
        self.set_tense(clause, frame, ("past", "present", "future", "modal"), timed=0.25)
        if clause.tense == "prog":
            clause.tense = "perf"
        if clause.swap:
            raise Rejected
        if where == "subject":
            targets: list[NounPhrase | None] = [subject]
        else:
            # Only what ends the English sentence: nothing may follow the relative clause.
            clause.time = clause.place = clause.companion = None
            clause.manner = ""
            if clause.tense == "pres" and not clause.frequency and "state" not in frame.marks:
                clause.tense = "perf"
            order = ("D", "A", "D>", "P", "AT", "TO")
            last = max(clause.arguments, key=lambda a: order.index(a.kind) if a.kind in order else 9, default=None)
            targets = [last.np] if last is not None and verb.particle_place == "near" else []
        heads = [
            np
            for np in targets
            if isinstance(np, Nominal)
            and (np.determiner in {"def", "indef"})
            and not np.noun.mass
            and not (np.determiner == "indef" and np.plural)
            and "kin" not in np.noun.classes
            and np.noun.lemma not in {"Sonne", "Wand"}
        ]
        if not heads:
            raise Rejected
        inner = self.relative(heads[0], alone=subject.pronoun)
        if inner.verb.lemma == verb.lemma:
            raise Rejected
        if len(heads[0].modifiers) > 1:
            raise Rejected
        self._note_clause(clause)
        self.nest(f"relative-in-{where}", clause)
        german, english = clause.german_main(), clause.english_declarative()
        if where == "object" and clause.argument("D>") is None:
            german, english = self._extraposed(clause, heads[0])
        return (german, english), "."

    @staticmethod
    def _extraposed(clause: Clause, head: Nominal) -> Sides:
        """The relative clause at the end of the sentence, after the closing bracket."""
        relative = head.relative
        assert relative is not None
        head.relative, head.described = None, True
        german = [*clause.german_main(), COMMA, *relative.german]
        return german, [*clause.english_declarative(), *relative.english]

    def relative(self, head: Nominal, alone: bool = False) -> Clause:
        """Give ``head`` a relative clause (returned), with a noun as subject if ``alone``."""
        self._pronouns = () if alone else ("ich", "du", "er", "wir")
        noun = head.noun
        kinds: list[tuple[str, float]] = [("nom", 2.0), ("acc", 3.0), ("prep", 3.0)]
        if noun.lemma in PLACE_OF:
            kinds.append(("place", 15.0))
        if head.animate:
            kinds += [("dat", 4.0), ("gen", 3.0)]
        kind = self.rng.weighted(kinds)
        link = anchor()
        person = head.animate
        if kind == "nom":
            inner = self._relative_subject(noun, head)
            direct = inner.argument("A")
            other = direct.np if direct is not None else None
            alike = other is not None and other.animate and not other.marks_case and other.person == head.person
            if alike and head.german_gender != "m":
                raise Rejected  # die Frau, die die Tochter vermisst: who misses whom?
            pronoun = words(head.relative_pronoun("nom"), link)
            german = [*pronoun, *inner.german_final(("subject",))]
            english = inner.english_declarative(subject=words("who" if person else "that", link))
        elif kind == "gen":
            german, english, inner = self._relative_genitive(head, link)
        elif kind in {"acc", "dat"}:
            slot = "A" if kind == "acc" else "D"
            inner = self._relative_object(noun, slot)
            if kind == "acc" and not (head.german_gender == "m" or inner.subject.marks_case):
                raise Rejected
            pronoun = words(head.relative_pronoun(kind), link)
            relative = "whom" if person else "that"
            if slot == "D" and inner.argument("A") is not None:
                # the man to whom she gave the book
                if inner.verb.lemma in {"kaufen", "stellen (Frage)"}:
                    raise Rejected
                to = words("to", maybe=(link,))
            else:
                to = []
            german = [*pronoun, *inner.german_final((slot,))]
            english = [*to, *words(relative, link), *inner.english_declarative(without=(slot,))]
        elif kind == "prep":
            inner = self._relative_object(noun, "P")
            arg = inner.argument("P")
            assert arg is not None
            if not arg.slot.en_prep or inner.verb.lemma in FIXED_PREPOSITION:
                raise Rejected
            pronoun = words(head.relative_pronoun(arg.slot.case), link)
            german = [*words(arg.slot.de_prep, arg.link), *pronoun, *inner.german_final(("P",))]
            english = [
                *words(arg.slot.en_prep, arg.link),
                *words("whom" if person else "which", link),
                *inner.english_declarative(without=("P",)),
            ]
        else:
            german, english, inner = self._relative_place(head, link)
        self.nest(f"relative-{kind}", inner)
        head.relative = Relative(german, english)
        return inner

    def _relative_tense(self, clause: Clause, frame: Frame) -> None:
        self.set_tense(clause, frame, ("past", "present"), timed=0.3)
        if clause.tense == "prog":
            clause.tense = "perf"
        if clause.frequency and clause.subject.pronoun is False and self.rng.chance(0.3):
            raise Rejected

    def _relative_subject(self, noun: Noun, head: Nominal) -> Clause:
        def fits(frame: Frame) -> bool:
            return accepts(frame.subject, noun) and "swap" not in frame.marks and frame.verb not in TIMED

        stand_in = Nominal(noun, "def", head.plural)
        verb, frame = self.pick(test=fits)
        clause = self.clause(verb, frame, stand_in, pronouns=False)
        self._relative_tense(clause, frame)
        return self._note_clause(clause)

    def _relative_object(self, noun: Noun, slot: str) -> Clause:
        def fits(frame: Frame) -> bool:
            if slot == "P" and sum(s.kind == "P" for s in frame.slots) > 1:
                return False
            return (
                "swap" not in frame.marks
                and any(s.kind == slot and accepts(s.classes, noun) for s in frame.slots)
                and ("person" in frame.subject or "adult" in frame.subject)
            )

        if not any(fits(frame) for _, frame in frames_with((), ())):
            raise Rejected
        verb, frame = self.pick(test=fits)
        subject = self.subject(frame, self._pronouns)
        clause = self.clause(verb, frame, subject, plain=True, pronouns=False)
        self._relative_tense(clause, frame)
        if isinstance(subject, Nominal) and subject.noun == noun:
            raise Rejected
        gap = clause.argument(slot)
        assert gap is not None
        gap.np = Nominal(noun)
        return self._note_clause(clause)

    def _relative_genitive(self, head: Nominal, link: int) -> tuple[list[Token], list[Token], Clause]:
        """The man whose brother ..."""
        kin, _ = self.noun(("kin",))
        if kin.plural_only or (is_child(head) and kin.lemma in YOUNGER):
            raise Rejected
        possessed = Possessed(kin)
        clause, frame = self.person_clause(possessed, avoid=())
        self._relative_tense(clause, frame)
        self._note_clause(clause)
        pronoun = words(head.relative_pronoun("gen"), link)
        german = [*pronoun, *clause.german_final()]
        english = [*words("whose", link), *clause.english_declarative()]
        return german, english, clause

    def _relative_place(self, head: Nominal, link: int) -> tuple[list[Token], list[Token], Clause]:
        """The house in which ..."""
        place = PLACE_OF.get(head.noun.lemma)
        if place is None or place.bare:
            raise Rejected

        def fits(frame: Frame) -> bool:
            return any(
                slot.kind == "AT" and any(head.noun.lemma in WHEREABOUTS.get(group, ()) for group in slot.classes)
                for slot in frame.slots
            ) and ("person" in frame.subject or "adult" in frame.subject)

        if not any(fits(frame) for _, frame in frames_with((), ())):
            raise Rejected
        verb, frame = self.pick(test=fits)
        subject = self.subject(frame, self._pronouns)
        clause = self.clause(verb, frame, subject, plain=True, pronouns=False)
        self._relative_tense(clause, frame)
        self._note_clause(clause)
        preposition = anchor()
        german = [
            *words(place.at_de, preposition),
            *words(head.relative_pronoun("dat"), link),
            *clause.german_final(("AT",)),
        ]
        english = [
            *words(place.at_en, preposition),
            *words("which", link),
            *clause.english_declarative(without=("AT",)),
        ]
        return german, english, clause
