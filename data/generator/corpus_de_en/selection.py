"""Selectional restrictions of nouns, adjectives and verb frames."""

from __future__ import annotations

from collections.abc import Sequence

from corpus_de_en.lexicon.adjectives import ADJECTIVES, Adjective
from corpus_de_en.lexicon.nouns import NOUN, NOUNS, Noun
from corpus_de_en.lexicon.situations import AWKWARD, OUTDOORS, SORTS
from corpus_de_en.lexicon.verbs import VERBS, Frame, Verb
from corpus_de_en.phrases import Enumeration, Nominal, NounPhrase
from corpus_de_en.tokens import Token


def class_members(classes: Sequence[str]) -> list[tuple[Noun, bool]]:
    """The nouns of the given classes; the flag says that only the plural fits (``shoes``)."""
    found: dict[str, tuple[Noun, bool]] = {}
    for name in classes:
        only_plural = name.endswith("!")
        name = name.rstrip("!")
        if name in NOUN:
            found[name] = (NOUN[name], only_plural)
            continue
        for noun in NOUNS:
            if name in noun.classes:
                found[noun.lemma] = (noun, only_plural)
    return list(found.values())


def fits_noun(adjective: Adjective, noun: Noun) -> bool:
    if (adjective.lemma, noun.lemma) in AWKWARD:
        return False
    return bool(adjective.classes & (noun.classes | {noun.lemma}))


FITTING: dict[str, list[Adjective]] = {noun.lemma: [a for a in ADJECTIVES if fits_noun(a, noun)] for noun in NOUNS}


ENGLISH_CONTENT = frozenset(
    [word for noun in NOUNS for word in (*noun.english, *noun.english_plural)]
    + [word for adjective in ADJECTIVES for word in adjective.english]
)


_FRAME_CACHE: dict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[Verb, Frame]]] = {}


def frames_with(need: tuple[str, ...], avoid: tuple[str, ...]) -> list[tuple[Verb, Frame]]:
    """All verb frames with all of the marks ``need`` and none of ``avoid``."""
    key = need, avoid
    if key not in _FRAME_CACHE:
        _FRAME_CACHE[key] = [
            (verb, frame)
            for verb in VERBS
            for frame in verb.frames
            if frame.marks.issuperset(need) and frame.marks.isdisjoint(avoid)
        ]
    return _FRAME_CACHE[key]


def is_animate(classes: Sequence[str]) -> bool:
    return (
        any(noun.classes & {"person", "baby", "animal"} for noun, _ in class_members(classes))
        if not set(classes) & {"city", "country", "language"}
        else True
    )


def accepts(classes: Sequence[str], noun: Noun) -> bool:
    return any(name == noun.lemma or name in noun.classes for name in classes if not name.endswith("!"))


def is_child(np: NounPhrase) -> bool:
    """True for a child or a group with one."""
    if isinstance(np, Enumeration):
        return any(is_child(item) for item in np.items)
    return isinstance(np, Nominal) and "kid" in np.noun.classes


def is_person(np: NounPhrase) -> bool:
    return np.animate or not isinstance(np, Nominal)


def owns_object(frame: Frame) -> bool:
    return (
        any(slot.kind == "A" for slot in frame.slots)
        and not frame.marks & {"swap"}
        and ("person" in frame.subject or "adult" in frame.subject)
    )


def outdoors(frame: Frame) -> bool:
    """True if the frame says something that depends on the weather."""
    return frame.verb in OUTDOORS


def repeats_word(source: Sequence[Token], target: Sequence[Token]) -> bool:
    """True if a content word is used twice."""
    nouns = [t.text.strip(".,?!") for t in source[1:] if t.text[0].isupper()]
    nouns.append(source[0].text.strip(".,?!"))
    nouns = [noun for noun in nouns if noun not in {"Sie", "Ihnen", "Ihr", "Uhr"}]
    content = [word for t in target if (word := t.text.strip(".,?!").lower()) in ENGLISH_CONTENT]
    lemmas = [note for token in source for note in token.notes if ":" not in note]
    if len(set(lemmas)) < len(lemmas):
        return True
    return len(set(nouns)) < len(nouns) or len(set(content)) < len(content)


def same_sort(one: Noun, two: Noun) -> bool:
    """True if two nouns can be compared."""
    return any(sort in one.classes and sort in two.classes for sort in SORTS)
