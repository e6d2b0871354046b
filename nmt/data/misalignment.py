"""Finds where the lines of two sides stop corresponding, from their lengths.

The lengths of a sentence and its translation correlate (Gale and Church 1993, "A Program for Aligning Sentences in
Bilingual Corpora"). An extra line on one side shifts all following lines, and removes the correlation from there on,
until the shift is undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

WINDOW, LEAST = 500, 200
"""Numbers of lines in which shifts are sought. With fewer than the least, chance would find some."""
FAR = 3
"""Maximum number of lines of a shift."""


def locate_misalignment(sources: Iterable[str], targets: Iterable[str]) -> int:
    """Returns the number, from 1, of the first line that probably does not correspond to the other side.

    Let r_i(k) be the difference of log lengths of source line i + k and target line i, less its mean. With d the
    difference of the line counts, the lines are cut into three runs at p <= q: until p they correspond, from q they
    correspond when shifted by d, between them not at all (empty where there is only one fault). Each run is normal:

        cost(p, q) = sum_{i<p} f(r_i(0), a) + sum_{p<=i<q} f(r_i(0), u) + sum_{i>=q} f(r_i(d), a)
        f(r, v) = r^2 / v + ln v

    u, the variance where nothing corresponds, is that of source plus that of target; a, where lines correspond, is
    estimated from the runs in turn with p and q. The best p and q for given a are found exactly, in one pass.
    """
    source, target = _log_lengths(sources), _log_lengths(targets)
    lines = min(len(source), len(target))
    if lines == 0:
        return 1
    extra = len(source) - len(target)
    unrelated = float(source.var() + target.var()) or 1.0
    mean = float(source.mean() - target.mean())
    here = _squares(source[:lines] - target[:lines] - mean, unrelated)
    shifted = _squares(source[max(extra, 0) :] - target[max(-extra, 0) :] - mean, unrelated)

    related = 0.25 * unrelated
    for _ in range(5):
        p, q = _cut(here, shifted, related, unrelated)
        squares = here[:p].sum() + shifted[q:].sum()
        related = min(max(float(squares) / max(p + lines - q, 1), 1e-3 * unrelated), 0.7 * unrelated)
    return p + 1


def shifted_windows(sources: Sequence[str], targets: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yields the first index, the end and the shift of each window whose lines correspond only when shifted: if the
    shift is 1, each source stands one line after its translation.

    With c_k the correlation of the log lengths of source line i + k and target line i, these are windows in which the
    highest c_k is above 0.5 and exceeds c_0 by 0.3. In seven natural corpora the highest c_k of each window is below
    c_0; of sentences sorted by length, all c_k are alike. Where half of the lines have one length, the few others would
    decide alone, or rounding if there are none, so nothing is sought there. Where most shifted lines hold the very text
    of the other side, as in dialogues, whose targets are the next sources, they are not translations, and right.
    """
    source, target = _log_lengths(sources), _log_lengths(targets)
    for begin in range(0, max(len(source) - LEAST, 0) + 1, WINDOW):
        end = begin + WINDOW if len(source) - begin - WINDOW >= LEAST else len(source)
        s, t = source[begin:end], target[begin:end]
        if len(s) >= LEAST and all(float(np.mean(side == np.median(side))) < 0.5 for side in (s, t)):
            of = {k: _correlation(s[max(k, 0) :][: len(s) - abs(k)], t[max(-k, 0) :]) for k in range(-FAR, FAR + 1)}
            shift = max(of, key=lambda k: of[k])
            if of[shift] > max(0.5, of[0] + 0.3):
                lines = zip(sources[begin + max(shift, 0) : end], targets[begin + max(-shift, 0) : end], strict=False)
                if sum(target in source or source in target for source, target in lines) <= (end - begin) / 2:
                    yield begin, end, shift


def _correlation(source: Floats, target: Floats) -> float:
    return float(np.corrcoef(source, target[: len(source)])[0, 1])


def _cut(here: Floats, shifted: Floats, related: float, unrelated: float) -> tuple[int, int]:
    """Finds the p <= q of lowest cost for given variances."""
    before = _sums(here / related + np.log(related))
    between = _sums(here / unrelated + np.log(unrelated))
    after = _sums(shifted / related + np.log(related))
    first = before - between  # cost if the middle run begins at p
    q = int(np.argmin(between - after + np.minimum.accumulate(first)))
    return int(np.argmin(first[: q + 1])), q


def _squares(residuals: Floats, unrelated: float) -> Floats:
    # limited, so that a blank line opposite a long one does not outweigh a hundred ordinary lines
    return np.minimum(residuals * residuals, 9 * unrelated)


def _sums(costs: Floats) -> Floats:
    """Computes the sums over every prefix, beginning with the empty one."""
    return np.concatenate([np.zeros(1), np.cumsum(costs)])


def _log_lengths(lines: Iterable[str]) -> Floats:
    return np.log1p(np.fromiter((len(line) for line in lines), dtype=np.float64))
