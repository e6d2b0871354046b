"""Term recall and BLEU of translations with a glossary and without.

    python scripts/benchmark_glossary.py MODEL SOURCE REFERENCE TRAIN_SOURCE TRAIN_TARGET [--terms 300]
    python scripts/benchmark_glossary.py MODEL SOURCE REFERENCE TRAIN_SOURCE TRAIN_TARGET --of-train

The glossary is made of the references: a word of the sources of at least four letters is a term if in the training
pairs an aligner links it with the same target words time and again, and if each reference of a sentence with it has one
of these. Its variants are those that the references have. So the glossary asks for nothing that a reference does not
have, and BLEU may rise. With ``--of-train`` the references are not read: a term is a frequent noun of the training
pairs, a word that has a capital within sentences, as in German. Its variants are the target words that it is often
linked with there. ``--variants`` keeps the most frequent of them. Prints a JSON line for each figure, with the 95 %
interval of the difference in BLEU by the paired bootstrap, and a table on stderr.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from measuring import plainly, print_table, report

import nmt
from nmt.core.errors import InputError
from nmt.data.corpus import read_lines
from nmt.data.words import text_words
from nmt.evaluation.bootstrap import compare, sentence_counts
from nmt.evaluation.translation import scores
from nmt.extras.aligner.align import WINDOW_PAIRS, TextAligner, learn_word_aligner
from nmt.extras.documents.glossary import Glossary, Term, find_variants, term_recall
from nmt.extras.documents.terminology import MAX_LOSS, with_glossary
from nmt.extras.pages.bilingual_lexicon import GAP, BilingualLexicon
from nmt.translator.translator import Translator

MIN_COUNT, MIN_SHARE = 3, 0.05
"""Minimum count of a pair of a source word and target words in the training pairs, and its minimum share of all pairs
with this source word."""

LETTERS = 4
"""Minimum number of letters of a term."""

MIN_NOUNS, MIN_NOUN_SHARE = 20, 0.1
"""Minimum number of occurrences of a noun in the training pairs, and minimum share of a variant in its links."""


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="run, or several separated by commas")
    for name in ("source", "reference", "train_source", "train_target"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--max-loss", type=lambda text: [float(part) for part in text.split(",")], default=[MAX_LOSS])
    parser.add_argument("--beam", type=int)
    parser.add_argument("--terms", type=int, default=300, help="of those found, at random")
    parser.add_argument("--lines", type=int, help="of the test set, the first")
    parser.add_argument("--of-train", action="store_true", help="make the glossary without the references")
    parser.add_argument("--variants", type=int, help="with --of-train, of a term at most")
    arguments = parser.parse_args()
    sources, references = (
        list(read_lines(path))[: arguments.lines] for path in (arguments.source, arguments.reference)
    )
    train = list(zip(read_lines(arguments.train_source), read_lines(arguments.train_target), strict=True))
    if arguments.of_train:
        nouns = frequent_nouns(source for source, _ in train)
        glossary = Glossary(
            tuple(
                Term(noun, variants[: arguments.variants])
                for noun, variants in linked(train, MIN_NOUN_SHARE)
                if noun in nouns
            )
        )
    else:
        glossary = gold_glossary(sources, references, dict(linked(train, MIN_SHARE)))
    if len(glossary.terms) > arguments.terms:
        glossary = Glossary(tuple(random.Random(1).sample(glossary.terms, arguments.terms)))
    if not (glossary.terms and term_recall(glossary, sources, references).total):
        raise InputError(f"{arguments.source}: has no term; take a larger test set, or more training pairs")
    changes = [] if arguments.beam is None else [f"search.beam={arguments.beam}"]
    report("terms", len(glossary.terms), "terms", "cpu")
    of_references = term_recall(glossary, sources, references)
    report("occurrences", of_references.total, "terms", "cpu")
    report("references: term recall", 100 * of_references.found / of_references.total, "%", "cpu")
    for model in arguments.model.split(","):
        translator, begin = nmt.load(model, overrides=changes), "" if model == arguments.model else f"{model}, "
        free = measure(f"{begin}without", translator, sources, references, glossary)
        for max_loss in arguments.max_loss:
            measured, name = with_glossary(translator, glossary, max_loss=max_loss), f"{begin}max_loss {max_loss:g}"
            texts = measure(name, measured, sources, references, glossary)
            compared = compare(sentence_counts(texts, references), sentence_counts(free, references))
            for end, value in (("least", compared.low), ("most", compared.high)):
                report(f"{name}: gain in BLEU, {end}", value, "BLEU", translator.trained.compute.label)
    print_table()


def frequent_nouns(lines: Iterable[str]) -> set[str]:
    """Lists the words of at least four letters that often have a capital after another word."""
    counts: Counter[str] = Counter()
    for line in lines:
        words = [line[begin:end] for begin, end in text_words(line)]
        counts.update(
            word for before, word in pairwise(words) if before.isalpha() and word.isalpha() and word[0].isupper()
        )
    return {word for word, count in counts.items() if count >= MIN_NOUNS and len(word) >= LETTERS}


def linked(pairs: Sequence[tuple[str, str]], min_share: float) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each source word of the training pairs, with the target words that are linked to it often enough, the
    most frequent first: at least this share of the pairs of words with it."""
    sources, targets = ([spaced(line) for line in side] for side in zip(*pairs, strict=True))
    aligner, lexicon = TextAligner(learn_word_aligner(sources, targets)), BilingualLexicon()
    for first in range(0, len(pairs), WINDOW_PAIRS):
        part = slice(first, first + WINDOW_PAIRS)
        for alignment in aligner.align(sources[part], targets[part], first_line=first + 1):
            lexicon.add(alignment, first + 1)
    linked_with: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
    for entry in lexicon.entries(min_count=MIN_COUNT):
        share = entry.target_given_source or 0
        if entry.source and entry.target and GAP not in entry.target and share >= min_share:
            linked_with[entry.source].append((-share, entry.target))
    for source, found in linked_with.items():
        yield source, tuple(target for _, target in sorted(found))


def spaced(line: str) -> str:
    """Returns a line with white space between its words."""
    return " ".join(line[begin:end] for begin, end in text_words(line))


def gold_glossary(sources: Sequence[str], references: Sequence[str], targets: dict[str, tuple[str, ...]]) -> Glossary:
    """The words of the sources whose references always have one of their ``targets``, with those that they have."""
    references_of: defaultdict[str, list[str]] = defaultdict(list)
    for source, reference in zip(sources, references, strict=True):
        for begin, end in text_words(source):
            word = source[begin:end]
            if word.isalpha() and len(word) >= LETTERS and word in targets:
                references_of[word].append(reference)
    terms = []
    for word, of_word in references_of.items():
        variants = [
            target
            for target in targets[word]
            if any(find_variants(reference, [Term(word, (target,))])[0] is not None for reference in of_word)
        ]
        term = Term(word, tuple(variants))
        if variants and all(find_variants(reference, [term])[0] is not None for reference in of_word):
            terms.append(term)
    return Glossary(tuple(terms))


def measure(
    name: str, translator: Translator, sources: Sequence[str], references: Sequence[str], glossary: Glossary
) -> list[str]:
    """Reports recall, BLEU and seconds of a translator. Returns its translations."""
    started = time.perf_counter()
    translations = [translation.text for translation in translator.translate(sources)]
    seconds, label = time.perf_counter() - started, translator.trained.compute.label
    recall = term_recall(glossary, sources, translations).percent
    assert recall is not None
    report(f"{name}: term recall", recall, "%", label)
    report(f"{name}: BLEU", scores(translations, references, metrics=("bleu",))[0].value, "BLEU", label)
    report(f"{name}: time", seconds, "s", label)
    return translations


if __name__ == "__main__":
    plainly(main)
