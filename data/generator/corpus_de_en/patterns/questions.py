"""Yes/no questions and questions with a question word."""

from __future__ import annotations

from corpus_de_en.clauses import Clause
from corpus_de_en.drawing import Drawing, Sides
from corpus_de_en.lexicon.situations import COUNTED, ONCE, QUESTION_ADVERBS
from corpus_de_en.lexicon.verbs import Frame
from corpus_de_en.phrases import POSSESSIVES, Nominal, Pronoun, Rejected, linked
from corpus_de_en.selection import is_animate
from corpus_de_en.tokens import anchor, words


class Questions(Drawing):
    """Yes/no questions and questions with a question word."""

    def question_yes_no(self) -> tuple[Sides, str]:
        """A yes/no question."""
        verb, frame = self.pick()
        subject = self.subject(frame, ("du", "er", "ihr", "sie", "Sie", "du", "Sie", "they"))
        clause = self.clause(verb, frame, subject)
        self.set_tense(clause, frame, ("past", "present", "future", "modal"), timed=0.35)
        self._ask(clause)
        self._note_clause(clause)
        self.nest("question-yes-no", clause)
        return (clause.german_after(), clause.english_question()), "?"

    @staticmethod
    def _ask(clause: Clause) -> None:
        """Modals whose question would mean something else are left out."""
        if (
            clause.tense == "modal"
            and clause.modal in {"sollen", "möchten"}
            and (clause.subject.person not in {"1s", "1p"} and clause.modal == "sollen")
        ):
            raise Rejected
        if clause.frequency and clause.frequency.german[0].text in {"nie", "selten"}:
            raise Rejected

    def question_wh(self) -> tuple[Sides, str]:
        """A question with a question word."""
        kind: str = self.rng.weighted(
            [
                ("when", 2.0),
                ("why", 2.0),
                ("who", 2.0),
                ("whom", 1.6),
                ("what", 2.0),
                ("where", 2.0),
                ("which", 1.5),
                ("how_many", 1.0),
                ("how_often", 0.7),
            ]
        )
        pronouns = ("du", "er", "ihr", "sie", "Sie", "they", "wir")

        def fits(frame: Frame) -> bool:
            kinds = {slot.kind: slot.classes for slot in frame.slots}
            if kind == "whom":
                if "D" in kinds and "A" not in kinds:
                    return "swap" not in frame.marks and "person" in kinds["D"]
                return "A" in kinds and "person" in kinds["A"] and len(kinds) == 1
            if kind == "what":
                things = kinds.get("A", ("person",))
                # Without its object, hören could be to hear as well as to listen to.
                return len(kinds) == 1 and not is_animate(things) and frame.verb != "hören (Musik)"
            if kind == "how_many" and frame.verb not in COUNTED:
                return False
            if kind in {"which", "how_many"}:
                return (
                    len(kinds) == 1
                    and "A" in kinds
                    and "swap" not in frame.marks
                    and (kind == "which" or "money" not in kinds["A"])
                    and not is_animate(kinds["A"])
                )
            if kind == "where":
                return "AT" in kinds or "TO" in kinds
            if kind == "who":
                return "person" in frame.subject or "adult" in frame.subject
            if kind == "how_often":
                return not frame.marks & {"state", "event"}
            return "swap" not in frame.marks

        verb, frame = self.pick(test=fits)
        subject = self.subject(frame, pronouns)
        if (kind == "how_often" and verb.lemma in ONCE) or not subject.definite:
            raise Rejected
        clause = self.clause(verb, frame, subject, plain=True, pronouns=False)
        spheres: tuple[str, ...] = ("past", "future", "modal")
        if kind in {"when", "why"}:
            spheres = ("past", "future")
        if kind == "how_often":
            spheres = ("present",)
        if kind == "when" and "state" in frame.marks:
            raise Rejected
        if "state" in frame.marks and kind != "why":
            spheres = ("present",)
        if kind == "how_often":
            clause.tense = "pres"
        else:
            self.set_tense(clause, frame, spheres, timed=0.25)
        if clause.tense == "modal":
            self._ask(clause)
        if kind == "when":
            clause.time = None
        clause.frequency = None
        gap = clause.argument("A") or clause.argument("D")
        if kind in {"what", "whom"} and gap is not None:
            gap.np = Pronoun("er")
        self._note_clause(clause)
        self.nest(f"question-{kind}", clause)
        return self._wh_order(kind, clause), "?"

    def _wh_order(self, kind: str, clause: Clause) -> Sides:
        """The question word first, then the question without what it asks for."""
        link = anchor()
        if kind in {"when", "why", "how_often"}:
            german, english = QUESTION_ADVERBS[kind]
            count = len(german.split())
            left, right = linked(german, english, " ".join(f"{i}-{i}" for i in range(count)))
            return [*left, *clause.german_after()], [*right, *clause.english_question()]
        if kind == "where":
            slot = "TO" if clause.argument("TO") is not None else "AT"
            left = words("wohin" if slot == "TO" else "wo", link)
            right = words("where", link)
        elif kind == "who":
            if (
                clause.subject.person != "3s"
                or clause.negated
                or any(isinstance(arg.np, Nominal) and arg.np.determiner in POSSESSIVES for arg in clause.arguments)
            ):
                raise Rejected
            return (
                [*words("wer", link), *clause.german_after(("subject",))],
                clause.english_declarative(subject=words("who", link)),
            )
        else:
            slot = "A" if clause.argument("A") else "D"
            left, right = self._asked_object(kind, clause, slot)
        return ([*left, *clause.german_after((slot,))], [*right, *clause.english_question((slot,))])

    @staticmethod
    def _asked_object(kind: str, clause: Clause, slot: str) -> Sides:
        """Questions for an object: what, whom, which book, how many books."""
        link = anchor()
        if kind == "whom":
            return words("wen" if slot == "A" else "wem", link), words("whom", link)
        if kind == "what":
            return words("was", link), words("what", link)
        argument = clause.argument(slot)
        assert argument is not None
        if not isinstance(argument.np, Nominal) or argument.np.noun.mass:
            raise Rejected
        noun = argument.np.noun
        if kind == "which":
            np = Nominal(noun, "welch", argument.np.plural, argument.np.modifiers)
            if not (np.marks_case or clause.subject.marks_case):
                raise Rejected
            return np.german("acc"), np.english()
        if clause.subject.person == "3p" and not clause.subject.marks_case:
            raise Rejected
        np = Nominal(noun, "many", True)
        return [*words("wie", link), *np.german("acc")], [*words("how", link), *np.english()]
