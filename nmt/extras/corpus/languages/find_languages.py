"""Reports the languages of a corpus, or writes its pairs with or without a side in another language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting, refuse_unwritable
from nmt.data.config import CorpusConfig
from nmt.data.corpus import numbered_pairs
from nmt.extras.corpus.languages.identify import NO_LANGUAGE, Fault, Identifier, fault, language
from nmt.workflows.align import corpus_of
from nmt.workflows.build_corpus import sample_pairs
from nmt.workflows.output_files import text_file

SAMPLE = 10_000
"""Number of pairs of a report, which are drawn at random from the different pairs."""

EXAMPLES = 3
"""Number of pairs of each fault that a report shows."""

MIN_SHARE = 0.002
"""Share of the lines from which a report names a language."""

LABELS: Mapping[Fault, str] = {
    "swapped": "swapped",
    "source": "with a source in another language",
    "target": "with a target in another language",
}


@dataclass(frozen=True)
class Examined:
    """A pair with the most probable language of each side."""

    line: int
    """Number of the line, from 1; 0 in a sample."""
    source: str
    target: str
    languages: tuple[str, str]
    fault: Fault | None


def find_languages(
    source: Path, target: Path, *, expected: str | None, margin: float, output: Path | None, format: str | None
) -> None:
    """Reports on a sample, to stdout. With ``format`` it writes the ``faults`` of the whole corpus, or the pairs that
    are ``kept``, to stdout if ``output`` is None, and logs a summary."""
    corpus = corpus_of(source, target)
    if output is not None:
        refuse_overwriting(output, source, target, option="--output")
        refuse_unwritable(output, option="--output")
    identifier = Identifier()
    sample = sample_pairs(corpus, SAMPLE, seed=1)
    languages = _expected(corpus, expected, identifier, sample)
    if format is None:
        examined = list(_examine(identifier, ((0, *pair) for pair in sample), languages, margin))
        with text_file(output) as stream:
            stream.writelines(f"{line}\n" for line in _report(examined, languages))
        return
    counts: Counter[Fault | None] = Counter()
    with text_file(output) as stream, log.progress(None, unit="pairs", description="languages") as bar:
        for each in _examine(identifier, numbered_pairs(corpus), languages, margin):
            counts[each.fault] += 1
            texts = [side.replace("\t", " ") for side in (each.source, each.target)]
            if format == "kept" and each.fault is None:
                stream.write("\t".join(texts) + "\n")
            elif format == "faults" and each.fault is not None:
                stream.write("\t".join([str(each.line), each.fault, *each.languages, *texts]) + "\n")
            bar.update()
    log.info(_summary(counts, languages))


def _examine(
    identifier: Identifier, pairs: Iterable[tuple[int, str, str]], expected: tuple[str, str], margin: float
) -> Iterator[Examined]:
    for line, source, target in pairs:
        scores = identifier.scores(source), identifier.scores(target)
        languages = language(scores[0]), language(scores[1])
        yield Examined(line, source, target, languages, fault(*scores, expected, margin))


def _expected(
    corpus: CorpusConfig, named: str | None, identifier: Identifier, sample: list[tuple[str, str]]
) -> tuple[str, str]:
    """Returns the languages that are given, or else those of the files' endings, or else the most frequent ones."""
    if named is not None:
        codes = [code.strip().lower().replace("_", "-").partition("-")[0] for code in named.split(",")]  # de of de-AT
        if len(codes) != 2 or not identifier.languages.issuperset(codes):
            raise InputError(
                f"--expected {named}: is not two of the languages that py3langid knows, source first, such as de,en: "
                f"{', '.join(sorted(identifier.languages))}"
            )
        return codes[0], codes[1]
    ends = [end.lower() for end in corpus.language_names or ()]
    if ends and identifier.languages.issuperset(ends):
        return ends[0], ends[1]
    source, target = (Counter(language(identifier.scores(text)) for text in side) for side in zip(*sample, strict=True))
    found = source.most_common(1)[0][0], target.most_common(1)[0][0]
    if found[0] == found[1] or NO_LANGUAGE in found:
        raise InputError(f"{corpus.name}: the languages are not clear; name them with --expected, such as de,en")
    return found


def _report(examined: list[Examined], expected: tuple[str, str]) -> Iterator[str]:
    for side, label in enumerate(("source", "target")):
        counts = Counter(each.languages[side] for each in examined)
        named = [(name, count) for name, count in counts.most_common() if count >= MIN_SHARE * len(examined)]
        rest = len(examined) - sum(count for _, count in named)
        shares = [*named, ("others", rest)] if rest else named
        yield f"{label:<10}" + ", ".join(f"{name} {count / len(examined):.1%}" for name, count in shares)
    yield _summary(Counter(each.fault for each in examined), expected)
    for kind in LABELS:
        for each in [each for each in examined if each.fault == kind][:EXAMPLES]:
            yield f"{kind:<10}{each.languages[0]}: {each.source} | {each.languages[1]}: {each.target}"


def _summary(counts: Counter[Fault | None], expected: tuple[str, str]) -> str:
    total = counts.total()
    parts = ", ".join(f"{counts[kind]:,} {label}" for kind, label in LABELS.items())
    return f"{'pairs':<10}{total - counts[None]:,} of {total:,} are not {expected[0]} and {expected[1]}: {parts}"
