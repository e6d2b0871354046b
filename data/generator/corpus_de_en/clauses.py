"""One clause, realised as a main clause, subordinate clause, question or infinitive.

A ``Clause`` holds what is said (verb, subject, complements, adverbials, tense); its methods give
the words of either language in the order that the kind of clause asks for.  German forms are
split into the finite verb (second, or last in subordinate clauses), the middle field and the
closing bracket (separable prefix, participles, infinitives).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from corpus_de_en.lexicon.function_words import MANNER
from corpus_de_en.lexicon.verbs import Slot, Verb, auxiliary
from corpus_de_en.morphology import english_ing, english_participle, english_past, english_third_person
from corpus_de_en.phrases import Adverbial, Enumeration, Nominal, NounPhrase, Rejected, german_pp, listed
from corpus_de_en.tokens import COMMA, Token, anchor, words

REFLEXIVE = {"1s": "mich", "2s": "dich", "3s": "sich", "1p": "uns", "2p": "euch", "3p": "sich"}


@dataclass(eq=False)
class Argument:
    """A complement of the verb: a noun phrase with its slot, or a finished adverbial."""

    slot: Slot
    np: NounPhrase | None = None
    adverbial: Adverbial | None = None
    link: int = field(default_factory=anchor)

    @property
    def kind(self) -> str:
        """The kind of its slot (A, D, P ...)."""
        return self.slot.kind


@dataclass(eq=False)
class Clause:
    """The content of one clause.

    ``tense``: pres, pret, perf, plup, fut, already (perfect with schon), prog (present with
    gerade), since (present with seit), while (preterite after während) or ``modal`` with
    ``modal`` and ``modal_tense`` set.
    """

    verb: Verb
    subject: NounPhrase
    arguments: list[Argument] = field(default_factory=list)
    tense: str = "pres"
    modal: str = ""
    modal_tense: str = "pres"
    passive: bool = False
    agent: NounPhrase | None = None
    negated: bool = False
    time: Adverbial | None = None
    frequency: Adverbial | None = None
    manner: str = ""
    place: Adverbial | None = None
    companion: NounPhrase | None = None
    likes: bool = False
    polite: bool = False
    swap: bool = False
    sharing: tuple[int, ...] = ()
    """The anchors of further verbs that have their auxiliary from this clause."""
    complement: Adverbial | None = None
    """A predicate of *sein* or another fixed ending, standing where a prefix would."""

    def __post_init__(self) -> None:
        self.v = anchor()
        self.finite = anchor()
        self.aux = anchor()
        self.modal_link = anchor()
        self.not_link = anchor()
        self.cue = anchor()
        self.gladly = anchor()
        self.companion_link = anchor()
        self.agent_link = anchor()
        self.please = anchor()
        self.manner_link = anchor()

    # ------------------------------------------------------------------------- shared helpers

    def argument(self, kind: str) -> Argument | None:
        """The first argument of a kind."""
        return next((arg for arg in self.arguments if arg.kind == kind), None)

    @property
    def kein(self) -> Nominal | None:
        """The object that is negated by kein, if there is one."""
        for arg in self.arguments:
            if isinstance(arg.np, Nominal) and arg.np.determiner == "kein":
                return arg.np
        return None

    # ---------------------------------------------------------------------------- German side

    def _german_bracket(self) -> tuple[Token, list[Token]]:
        """The finite verb and the closing bracket in main-clause order."""
        verb, cell = self.verb, self.subject.person
        prefix = words(verb.prefix, self.v) if verb.prefix else []
        participle = words(verb.participle, self.v)
        infinitive = words(verb.full_infinitive, self.v)
        if self.passive:
            core_infinitive = participle + words("werden", self.aux)
        else:
            core_infinitive = infinitive
        if self.tense == "modal":
            form = auxiliary(self.modal, self.modal_tense, cell)
            finite = words(form, self.modal_link, maybe=(self.finite,))
            return finite[0], core_infinitive
        if self.tense == "fut":
            return words(auxiliary("werden", "pres", cell), self.modal_link)[0], core_infinitive
        if self.passive:
            if self.tense == "perf":
                finite = words(auxiliary("sein", "pres", cell), self.aux)
                return finite[0], participle + words("worden", maybe=(self.aux,))
            tense = "pret" if self.tense == "pret" else "pres"
            return words(auxiliary("werden", tense, cell), self.aux)[0], participle
        if self.tense in {"perf", "plup", "already"}:
            tense = "pret" if self.tense == "plup" else "pres"
            form = auxiliary(verb.aux, tense, cell)
            if self.tense == "perf":
                return words(form, maybe=(self.v, self.finite, *self.sharing))[0], participle
            return words(form, self.aux)[0], participle
        if verb.infinitive in {"sein", "haben"}:
            tense = "pret" if self.tense == "pret" else "pres"
            form = auxiliary(verb.infinitive, tense, cell)
            return words(form, self.v, maybe=(self.finite,))[0], prefix
        form = verb.preterite(cell) if self.tense in {"pret", "while"} else verb.present(cell)
        return words(form, self.v, maybe=(self.finite,))[0], prefix

    def _german_argument(self, arg: Argument) -> list[Token]:
        if arg.adverbial:
            return arg.adverbial.german
        assert arg.np is not None
        if arg.kind in {"A", "I", "N"}:
            return arg.np.german("acc")
        if arg.kind in {"D", "D>"}:
            return arg.np.german("dat")
        phrase = german_pp(arg.slot.de_prep, arg.np, arg.slot.case, arg.link)
        if not arg.slot.en_prep:
            first = phrase[0]
            phrase[0] = Token(first.text, first.sure, first.possible | {self.v})
        return phrase

    def _german_units(self) -> list[tuple[str, list[Token]]]:
        """The middle field in its unmarked order, each part under a name."""
        units: list[tuple[str, list[Token]]] = []
        subject = ("subject", self.subject.german("nom"))
        reflexive = [arg for arg in self.arguments if arg.kind == "R"]
        if reflexive:
            part = ("R", words(REFLEXIVE[self.subject.person], maybe=(self.v,)))
            after = self.subject.pronoun or self.subject.holds_first_place
            units += [subject, part] if after else [part, subject]
        elif (
            self.swap
            and (dative := self.argument("D")) is not None
            and (dative.np is not None and dative.np.pronoun and not self.subject.pronoun)
        ):
            units += [("D", dative.np.german("dat")), subject]
        else:
            units.append(subject)
        by_kind: dict[str, list[Argument]] = {}
        for arg in self.arguments:
            by_kind.setdefault(arg.kind, []).append(arg)

        def add(arg: Argument) -> None:
            units.append((arg.kind, self._german_argument(arg)))

        accusative = by_kind.get("A", [])
        recipients = by_kind.get("D", []) + by_kind.get("D>", [])
        for arg in accusative + recipients:
            if arg.np is not None and arg.np.pronoun and not self.swap:
                add(arg)
        for arg in recipients:
            if arg.np is not None and not arg.np.pronoun:
                add(arg)
        definite = [a for a in accusative if a.np and not a.np.pronoun and a.np.definite]
        indefinite = [a for a in accusative if a.np and not a.np.pronoun and not a.np.definite]
        if self.negated:
            for arg in definite:
                add(arg)
        if self.polite:
            units.append(("please", words("bitte", self.please)))
        if self.time:
            units.append(("time", self.time.german))
        if self.agent is not None:
            units.append(("agent", german_pp("von", self.agent, "dat", self.agent_link)))
        if self.tense == "prog":
            units.append(("cue", words("gerade", self.cue, maybe=(self.v,))))
        if self.tense == "already" and not self.negated:
            position = "before" if not definite else "after"
        else:
            position = ""
        if position == "before":
            units.append(("cue", words("schon", self.cue)))
        if self.frequency:
            units.append(("frequency", self.frequency.german))
        if not self.negated:
            for arg in definite:
                add(arg)
        if position == "after":
            units.append(("cue", words("schon", self.cue)))
        if self.likes:
            units.append(("likes", words("gern", self.gladly)))
        if self.negated and self.kein is None:
            if self.tense == "already":
                units.append(("cue", words("noch", self.cue)))
            units.append(("not", words("nicht", self.not_link)))
        if self.companion is not None:
            units.append(("with", german_pp("mit", self.companion, "dat", self.companion_link)))
        if self.place:
            units.append(("place", self.place.german))
        if self.manner:
            units.append(("manner", words(self.manner, self.manner_link)))
        for arg in indefinite:
            add(arg)
        for kind in ("P", "AT", "TO", "I", "N"):
            for arg in by_kind.get(kind, []):
                add(arg)
        if self.complement:
            units.append(("complement", self.complement.german))
        return units

    def _check_genitive(self, units: Sequence[tuple[str, list[Token]]]) -> None:
        """Reject a dative that could be read as a genitive (die Kollegin der Ärztin)."""
        names = [name for name, _ in units]
        recipient = self.argument("D") or self.argument("D>")
        subject = self.subject.items[-1] if isinstance(self.subject, Enumeration) else self.subject
        if recipient is None or not isinstance(subject, Nominal):
            return
        after = names[names.index("subject") + 1 :][:1] if "subject" in names else []
        dative = recipient.np
        if after == [recipient.kind] and isinstance(dative, Nominal) and (dative.german_gender == "f"):
            raise Rejected

    def _german_middle(self, without: Sequence[str] = ()) -> list[Token]:
        self._check_genitive([unit for unit in self._german_units() if unit[0] not in without])
        return [t for name, part in self._german_units() if name not in without for t in part]

    def frontable(self) -> list[str]:
        """The parts that may stand first without making the sentence ambiguous or odd."""
        names = []
        for name, _ in self._german_units():
            if self.tense == "since":
                continue
            if name in {"time", "place"}:
                names.append(name)
            if name in {"A", "D"}:
                arg = self.argument(name)
                assert arg is not None
                assert arg.np is not None
                if self.swap or arg.np.pronoun or self.kein or not arg.np.definite:
                    continue
                if isinstance(arg.np, Nominal) and arg.np.determiner.startswith("ihr"):
                    continue
                if name == "D" and self.argument("A") is not None:
                    continue
                if name == "D" or arg.np.marks_case or (self.subject.pronoun and self.subject.marks_case):
                    names.append(name)
        return names

    def german_main(self, front: str = "subject") -> list[Token]:
        """A verb-second clause with ``front`` in the first place."""
        finite, bracket = self._german_bracket()
        units = self._german_units()
        first = next(part for name, part in units if name == front)
        self._check_genitive([unit for unit in units if unit[0] != front])
        middle = [t for name, part in units if name != front for t in part]
        return [*first, finite, *middle, *bracket]

    def german_after(self, without: Sequence[str] = ()) -> list[Token]:
        """A main clause from its finite verb on, as after a first constituent of another clause."""
        finite, bracket = self._german_bracket()
        return [finite, *self._german_middle(without), *bracket]

    def german_final(self, without: Sequence[str] = ()) -> list[Token]:
        """A subordinate clause, without its conjunction: the finite verb comes last."""
        finite, bracket = self._german_bracket()
        if self.verb.prefix and bracket and bracket[0].text == self.verb.prefix:
            ending = [bracket[0].joined(finite, self.verb.prefix + finite.text)]
        else:
            ending = [*bracket, finite]
        return [*self._german_middle(without), *ending]

    def german_zu(self) -> list[Token]:
        """An infinitive clause with zu; the subject stays unsaid."""
        zu = self.verb.zu_infinitive
        middle = self._german_middle(("subject",))
        if len(zu) == 2:
            return [*middle, *words("zu", self.aux), *words(zu[1], self.v)]
        return [*middle, *words(zu[0], self.v, self.aux)]

    def german_imperative(self, who: str) -> list[Token]:
        """An order to du, ihr or Sie."""
        if who == "du":
            finite = words(self.verb.imperative, self.v, maybe=(self.finite,))
        else:
            form = self.verb.present("2p" if who == "ihr" else "3p")
            finite = words(form, self.v, maybe=(self.finite,))
        if who == "Sie":
            finite += words("Sie", maybe=(self.v,))
        prefix = words(self.verb.prefix, self.v) if self.verb.prefix else []
        return [*finite, *self._german_middle(("subject",)), *prefix]

    # --------------------------------------------------------------------------- English side

    @property
    def english_subject(self) -> NounPhrase:
        """The English subject: usually the German one (Das Buch gefällt mir: I like ...)."""
        if self.swap:
            arg = self.argument("D")
            assert arg is not None
            assert arg.np is not None
            return arg.np
        return self.subject

    @property
    def _english_cell(self) -> str:
        person = self.english_subject.person
        if self.english_subject.pronoun and person == "2s":
            return "2p"
        return person

    def _be(self, past: bool, *sure: int, maybe: Sequence[int] = ()) -> list[Token]:
        cell = self._english_cell
        if past:
            form = "was" if cell in {"1s", "3s"} else "were"
        else:
            form = {"1s": "am", "3s": "is"}.get(cell, "are")
        return words(form, *sure, maybe=maybe)

    def _near(self) -> list[Token]:
        if self.verb.particle_place == "near":
            return words(self.verb.particle, self.v)
        return []

    def _base(self) -> list[Token]:
        """The infinitive group, passive or not."""
        if self.passive:
            return [*words("be", self.aux), *self._participle()]
        return words(self.verb.english, self.v) + self._near()

    def _participle(self) -> list[Token]:
        return words(english_participle(self.verb.english), self.v) + self._near()

    def _finite(
        self, base: str, past: bool, link: int, rest: list[Token], support: bool
    ) -> tuple[list[Token], list[Token]]:
        """A finite full verb, with do if the clause is negated or inverted."""
        if base == "be":
            return self._be(past, link), rest
        third = self._english_cell == "3s"
        if support:
            form = "did" if past else ("does" if third else "do")
            return words(form, maybe=(self.finite,)), [*words(base, link), *rest]
        if past:
            form = english_past(base)
        else:
            form = english_third_person(base) if third else base
        return [], [*words(form, link), *rest]

    def _english_group(self, support: bool) -> tuple[list[Token], list[Token]]:
        """Operator (what a question puts before the subject) and the rest of the verb group."""
        base = self._base()
        if self.tense == "fut":
            return words("will", self.modal_link), base
        if self.tense == "modal":
            return self._english_modal(base, support)
        past = self.tense in {"pret", "perf"}
        if self.likes:
            to_base = [*words("to", maybe=(self.gladly,)), *base]
            return self._finite("like", past, self.gladly, to_base, support)
        if self.tense in {"already", "plup"}:
            if self.tense == "plup":
                operator = "had"
            else:
                operator = "has" if self._english_cell == "3s" else "have"
            return words(operator, self.aux), self._participle()
        if self.tense == "since":
            has = words("has" if self._english_cell == "3s" else "have", maybe=(self.v,))
            if self.verb.english == "learn":
                been = words("been", maybe=(self.v,))
                return has, [*been, *words(english_ing(self.verb.english), self.v)]
            return has, self._participle()
        if self.passive:
            return self._be(past, self.aux), self._participle()
        if self.tense == "while":
            ing = words(english_ing(self.verb.english), self.v)
            return self._be(True, maybe=(self.v,)), ing + self._near()
        if self.tense == "prog":
            ing = words(english_ing(self.verb.english), self.v)
            return self._be(False, self.cue, maybe=(self.v,)), ing + self._near()
        return self._finite(self.verb.english, past, self.v, self._near(), support)

    def _english_modal(self, base: list[Token], support: bool) -> tuple[list[Token], list[Token]]:
        link, past = self.modal_link, self.modal_tense == "pret"
        if self.modal == "können":
            return words("could" if past else "can", link), base
        if self.modal == "sollen":
            return words("should", link), base
        if self.modal == "dürfen":
            return self._be(past, link), [*words("allowed to", link), *base]
        if self.modal == "möchten":
            return words("would", link), [*words("like to", link), *base]
        lexical = "have" if self.modal == "müssen" else "want"
        return self._finite(lexical, past, link, [*words("to", link), *base], support)

    def _english_not(self, operator: list[Token]) -> list[Token]:
        """The operator with *not*; can + not is one word."""
        kein = self.kein
        if kein is not None and kein.no_means_no:
            return operator
        link = kein.determiner_link if kein is not None else self.not_link
        negation = words("not", link)[0]
        if operator and operator[0].text == "can":
            return [operator[0].joined(negation, "cannot")]
        return [*operator, negation]

    @property
    def _needs_not(self) -> bool:
        return self.negated and not (self.kein is not None and self.kein.no_means_no)

    def _english_tail(self, without: Sequence[str] = ()) -> list[Token]:
        """Everything after the verb group: objects, manner, company, place, time."""
        result: list[Token] = []
        particle = words(self.verb.particle, self.v)
        place = self.verb.particle_place
        direct = self.argument("A")
        if self.swap:
            assert isinstance(self.subject, NounPhrase)
            return [*self.subject.english(), *self._english_end(without)]
        shifted = place == "late" or (
            place == "shift" and direct is not None and direct.np is not None and direct.np.pronoun
        )
        missing = direct is None or "A" in without or self.passive
        if place == "shift" and (not shifted or missing):
            result += particle
        recipient = self.argument("D")
        if recipient is not None and recipient.np is not None and "D" not in without:
            result += recipient.np.english()
        if direct is not None and direct.np is not None and not missing:
            result += direct.np.english()
        if shifted and (not missing or place == "late"):
            result += particle
        for arg in self.arguments:
            if arg.kind in without:
                continue
            if arg.kind == "D>":
                assert arg.np is not None
                receiver = arg.np.english()
                maybe = arg.np.german("dat")[0].sure
                result += [*words(arg.slot.en_prep, maybe=maybe), *receiver]
            if arg.kind in {"I", "N"}:
                assert arg.np is not None
                result += arg.np.english()
        if self.complement:
            result += self.complement.english
        prepositional = self._english_prepositional(without)
        if self.argument("P") is None and self.argument("TO") is None:
            result += self._english_manner() + prepositional
        else:
            result += prepositional + self._english_manner()
        if self.agent is not None:
            result += [*words("by", self.agent_link), *self.agent.english()]
        return [*result, *self._english_end(without)]

    def _english_prepositional(self, without: Sequence[str]) -> list[Token]:
        result: list[Token] = []
        for arg in self.arguments:
            if arg.kind in without:
                continue
            if arg.kind == "P":
                assert arg.np is not None
                result += [*words(arg.slot.en_prep, arg.link), *arg.np.english()]
            if arg.kind in {"AT", "TO"}:
                assert arg.adverbial is not None
                result += arg.adverbial.english
        return result

    def _english_manner(self) -> list[Token]:
        return words(MANNER[self.manner], self.manner_link) if self.manner else []

    def _english_end(self, without: Sequence[str]) -> list[Token]:
        result: list[Token] = []
        if self.companion is not None:
            result += [*words("with", self.companion_link), *self.companion.english()]
        if self.place and "place" not in without:
            result += self.place.english
        if self.time and "time" not in without:
            result += self.time.english
        if self.tense == "already" and self.negated:
            result += words("yet", self.cue)
        return result

    def english_declarative(self, subject: list[Token] | None = None, without: Sequence[str] = ()) -> list[Token]:
        """Subject, verb, rest; ``subject`` replaces the subject (a relative pronoun)."""
        operator, rest = self._english_group(self._needs_not)
        if self._needs_not:
            operator = self._english_not(operator)
        middle = self.frequency.english if self.frequency else []
        if self.tense == "already" and not self.negated:
            middle = words("already", self.cue)
        start = self.english_subject.english("subject") if subject is None else subject
        return [*start, *operator, *middle, *rest, *self._english_tail(without)]

    def english_question(self, without: Sequence[str] = ()) -> list[Token]:
        """The inverted order of questions, without the question word."""
        operator, rest = self._english_group(True)
        middle = self.frequency.english if self.frequency else []
        negation = words("not", self.not_link) if self.negated else []
        return [
            *operator,
            *self.english_subject.english("subject"),
            *negation,
            *middle,
            *rest,
            *self._english_tail(without),
        ]

    def english_to(self) -> list[Token]:
        """The to-infinitive with its complements."""
        base = self._base()
        return [*words("to", self.aux), *base, *self._english_tail()]

    def english_base(self) -> list[Token]:
        """The bare infinitive with its complements."""
        return [*self._base(), *self._english_tail()]

    def english_ing(self) -> list[Token]:
        """The -ing form with its complements (without reading the letter)."""
        ing = words(english_ing(self.verb.english), self.v, maybe=(self.aux,))
        return [*ing, *self._near(), *self._english_tail()]


class Chain:
    """Several predicates of one subject: she cleaned the kitchen, cooked a soup and read a book.

    All clauses have the same subject and tense; what they share is said once.  In the perfect, in
    the future and with a modal verb that includes the finite verb (hat geputzt und gekocht).
    """

    def __init__(self, clauses: Sequence[Clause]) -> None:
        self.clauses = clauses
        self.first, *self.others = clauses
        self._and = anchor()
        tense = self.first.tense
        self._compound = tense in {"perf", "plup", "fut", "modal"}
        if tense in {"perf", "plup"} and len({clause.verb.aux for clause in clauses}) > 1:
            raise Rejected
        if tense == "perf":
            self.first.sharing = tuple(clause.v for clause in self.others)

    def _german_chain(self, first: list[Token]) -> list[Token]:
        further = [clause.german_after(("subject",)) for clause in self.others]
        if self._compound:
            further = [part[1:] for part in further]
        return listed([first, *further], words("und", self._and))

    def german_main(self, front: str = "subject") -> list[Token]:
        """Verb-second, with ``front`` in the first place."""
        return self._german_chain(self.first.german_main(front))

    def german_after(self) -> list[Token]:
        """From the finite verb on, as after a subordinate clause."""
        return self._german_chain(self.first.german_after())

    def german_final(self) -> list[Token]:
        """A subordinate clause: a shared finite verb comes last, once."""
        parts = [self.first.german_final()]
        finite = parts[0][-1:]
        parts += [clause.german_final(("subject",)) for clause in self.others]
        conjunction = words("und", self._and)
        if self._compound:
            return [*listed([part[:-1] for part in parts], conjunction), *finite]
        return listed(parts, conjunction)

    def _english_further(self, clause: Clause) -> list[Token]:
        if clause.tense == "modal":
            return clause.english_base()
        predicate = clause.english_declarative(subject=[])
        return predicate[1:] if clause.tense in {"plup", "fut", "while"} else predicate

    def english_declarative(self, without: Sequence[str] = ()) -> list[Token]:
        """Subject and predicates."""
        first = self.first.english_declarative(without=without)
        further = [self._english_further(clause) for clause in self.others]
        return listed([first, *further], words("and", self._and))


def subordinate(
    conjunction: tuple[str, str], clause: Clause | Chain, link: int | None = None
) -> tuple[list[Token], list[Token]]:
    """Conjunction and clause, without surrounding commas."""
    link = anchor() if link is None else link
    german = [*words(conjunction[0], link), *clause.german_final()]
    english = [*words(conjunction[1], link), *clause.english_declarative()]
    return german, english


def comma_join(left: list[Token], right: list[Token]) -> list[Token]:
    """Two clauses with a comma between them."""
    return [*left, COMMA, *right]
