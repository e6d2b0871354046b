"""Detection of faults of a corpus in a sample of its pairs: swapped sides, sides in another language, HTML entities,
text that was read in a wrong encoding.

With c(g) the share of letter trigram g on a side of the sample, a pair (x, y) counts as swapped if its trigrams are
more frequent on the other sides, by more than `MARGIN` in the mean over all g in x and y:

    sum_{g in x} log(c_target(g) / c_source(g)) + sum_{g in y} log(c_source(g) / c_target(g))

and a side is unlike the others if its mean of log c(g) is `UNLIKE` below that of the sample. A few wrong pairs hardly
change the counts, so the sample serves as its own model.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

MARGIN, UNLIKE, LEAST = 0.3, 1.5, 20
"""Thresholds in nats, and the smallest number of trigrams of a side that is judged."""

_UNKNOWN = -12.0
"""Value of log c for a trigram that the side does not have."""

_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}[0-9]{0,2}|#[0-9]{2,6}|#[xX][0-9a-fA-F]{2,6});")

_WRONG_ENCODING = re.compile("[\x80-\x9f]|[ÂÃÐÑ][\xa0-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]|â€")
"""UTF-8 that was read as Latin-1 or Windows-1252 (Ã¤ for ä), or Windows-1252 as Latin-1 (U+0093 for “)."""


def doubts(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Describes suspicious properties of a corpus in sentences; returns none for a usual corpus, or for very few
    pairs."""
    if len(pairs) < 200:
        return []
    grams = [[_trigrams(text[:300]) for text in pair] for pair in pairs]
    counts = [Counter(gram for pair in grams for gram in pair[side]) for side in (0, 1)]
    logs = [{gram: math.log(n / count.total()) for gram, n in count.items()} for count in counts]
    means = [
        sum(log[gram] * n for gram, n in count.items()) / count.total() for log, count in zip(logs, counts, strict=True)
    ]
    swapped, unlike = 0, [0, 0]
    for pair in grams:
        gain = 0.0
        for side, own in enumerate(pair):
            there = sum(logs[side][gram] for gram in own)
            gain += sum(logs[1 - side].get(gram, _UNKNOWN) for gram in own) - there
            unlike[side] += len(own) >= LEAST and there < (means[side] - UNLIKE) * len(own)
        swapped += gain > MARGIN * sum(map(len, pair))
    texts = [" ".join(pair) for pair in pairs]
    entities, misread = (sum(map(bool, map(found.search, texts))) for found in (_ENTITY, _WRONG_ENCODING))
    found = zip(_FOUND, (swapped, *unlike, entities, misread), strict=True)
    shares = [(label, least, count / len(pairs)) for (label, least), count in found]
    return [f"{share:.1%} of its pairs, by a sample, {label}" for label, least, share in shares if share >= least]


_FOUND = (
    ("look swapped; nmt languages finds them", 0.005),
    ("have a source unlike the others; nmt languages finds those in another language", 0.045),
    ("have a target unlike the others; nmt languages finds those in another language", 0.045),
    ("have HTML entities such as &quot;, and unescape: true of the corpus replaces them", 0.01),
    ("were once read in a wrong encoding (Ã¤ for ä); convert the original file anew", 0.005),
)
"""Messages, and the share of pairs from which on each is shown. In clean corpora at most 0.06 % look swapped and 3.9 %
unlike the others."""


def _trigrams(text: str) -> list[str]:
    text = f" {text.lower()} "
    return [text[place : place + 3] for place in range(len(text) - 2)]
