"""Training pairs in which a word and its translation are exchanged for a rare entry of a dictionary.

Fadaee, Bisazza and Monz 2017, "Data Augmentation for Low-Resource Neural Machine Translation". Differences from the
paper: the words that are exchanged are aligned by the dictionary, as a word of the source and one of the target that
are an entry, and the fluency of the new word is not judged by a language model but by the kind of the entry: its part
of speech or gender, or the endings of both sides; and whether both are capitalised, and begin with a vowel, before
which articles change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from nmt.data.words import text_words
from nmt.extras.corpus.augment.dictionary import DictionaryEntry, count_words, words_of

RARE = 5
"""Number of occurrences in the training corpus below which a word is rare."""

ENTRIES, EXCHANGED = 0.5, 0.25
"""Maximum numbers of entries that become pairs, and of pairs with an exchanged word, for each training pair."""

USES = 2
"""Maximum number of pairs into which an entry is put."""

FREQUENT = 0.001
"""Share of the words of the training sources above which a word is taken for a function word and stays."""


def most_useful(entries: Iterable[DictionaryEntry], counts: Sequence[Mapping[str, int]]) -> list[DictionaryEntry]:
    """Sorts different entries: those with a source word that is rare in the training corpus come first; of these, the
    first sense of each source, which is the translation of fewest words that is most frequent in the training corpus;
    of these, those whose rarest word is most frequent in the dictionary, as everyday words are in several entries.
    ``counts`` are those of the words of the training corpus, of its sources and targets."""
    uses = count_words(entry.source for entry in entries)
    senses: dict[str, list[DictionaryEntry]] = defaultdict(list)
    for entry in dict.fromkeys(entries):
        senses[entry.source].append(entry)
    order: dict[DictionaryEntry, tuple[bool, int, int]] = {}
    for source, alike in senses.items():
        words = words_of(source)
        is_known = all(counts[0].get(word, 0) >= RARE for word in words)
        alike.sort(key=lambda entry: sense_order(entry.target, counts[1]))
        order |= {entry: (is_known, sense, -_rarest(source, uses)) for sense, entry in enumerate(alike)}
    return sorted(order, key=order.__getitem__)


def sense_order(translation: str, counts: Mapping[str, int]) -> tuple[int, int]:
    """Returns the key that sorts translations of a word: those of fewest words, most frequent in training, come first.
    ``counts`` are those of the words of the training targets."""
    return len(translation.split()), -_rarest(translation, counts)


def _rarest(text: str, counts: Mapping[str, int]) -> int:
    return min((counts.get(word, 0) for word in words_of(text)), default=0)


def kind_of(entry: DictionaryEntry) -> Hashable:
    """Returns what entries have in common that can stand for each other."""
    sides = (entry.source, entry.target)
    endings = () if entry.mark else tuple(text[-2:] for text in sides)
    return entry.mark, endings, tuple((text[0].isupper(), text[0].lower() in "aeiou") for text in sides)


def exchanged_words(
    pairs: Iterable[Sequence[str]], entries: Sequence[DictionaryEntry], counts: Mapping[str, int], seed: int
) -> Iterator[Sequence[str]]:
    """Yields training pairs with one word and its translation exchanged. ``entries`` are in the order in which they are
    put in, of which those with one word on each side can be replaced; ``counts`` are those of the words of the
    sources."""
    most = max(RARE, FREQUENT * sum(counts.values()))
    translations: dict[str, dict[str, Hashable]] = defaultdict(dict)
    rare: dict[Hashable, list[DictionaryEntry]] = defaultdict(list)
    for entry in entries:
        lengths = [len(text_words(text)) for text in entry[:2]]
        count = counts.get(entry.source.lower(), 0)
        if lengths == [1, 1] and count < most:
            translations[entry.source].setdefault(entry.target, kind_of(entry))
        if lengths[0] == 1 and lengths[1] <= 2 and count < RARE:
            rare[kind_of(entry)] += [entry] * USES
    replacements = {kind: iter(alike) for kind, alike in rare.items()}
    made = 0
    for number, pair in enumerate(pairs, 1):
        if made + 1 > EXCHANGED * number:
            continue
        spans = [text_words(line) for line in pair]
        source, target = ([line[begin:end] for begin, end in side] for line, side in zip(pair, spans, strict=True))
        links = [
            (i, j)
            for (i, word), (j, other) in product(enumerate(source), enumerate(target))
            if other in translations.get(word, ())
        ]
        # a word with two links, or that stands twice, has no certain counterpart
        links_of = [Counter(link[side] for link in links) for side in (0, 1)]
        certain = [(i, j) for i, j in links if links_of[0][i] == links_of[1][j] == 1]
        if certain:
            i, j = certain[int(np.random.default_rng([seed, number]).integers(len(certain)))]
            replacement = next(replacements.get(translations[source[i]][target[j]], iter(())), None)
            if replacement is not None and replacement.source != source[i]:
                made += 1
                places = spans[0][i], spans[1][j]
                yield [
                    line[:begin] + text + line[end:]
                    for line, (begin, end), text in zip(pair, places, replacement[:2], strict=True)
                ]
