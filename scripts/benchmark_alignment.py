"""Word alignment: speed and error rates of our aligners, of trained models, of eflomal and fast_align, side by side.

    python scripts/benchmark_alignment.py train.de train.en --gold dev.de dev.en dev.align [--model RUN [--reverse RUN]]
        [--threads 1 --threads 2] [--rounds 3] [--pairs N] [--without-spaces source|target]

Speed: ``eflomal`` (`pip install '.[eflomal]'`) learns from and aligns the training text and the gold text, both
directions, with its default settings and as many threads as it takes. ``fast_align``, as the package systran-align has
it, does with the settings that its authors recommend (-d -o -v) and joins both directions. ``nmt`` learns from the same
and saves what it has learnt; then it loads that and aligns what it has learnt from, as ``nmt align --learn`` does.
``trained`` is ``nmt align RUN --method trained``, of a run that has an aligner. Text goes in and Pharaoh lines come
out; Python and its modules are there already. Each system is a process of its own, as are our learning and our
aligning, and all work in turn (A B A B ...) for ``--rounds``: the median of wall clock and processor seconds is told,
and the median of eflomal's over ours in the same round, for our learning and aligning together and for our aligning
alone. Memory is the most that a process had, Python included; of eflomal what its own programs had, without the Python
process that starts them.

Quality: AER, precision and recall on the gold text. eflomal gets words and signs in lower case; its links are brought
to the white-space words, and its two directions joined by grow-diag-final-and. Of ours: the forward matrix, the
backward one and both joined, of each granularity and of the mean of the first two, three ..., how many pairs of words
of each probability are links, and the error rates for each least probability; of models: attention (mean of all heads,
and of each layer), gradients and, of a run with an aligner, what it learnt. Prints a JSON line for each figure, and a
table on stderr.

``--without-spaces`` imitates a script without spaces on one side: letters become ideographs, and the spaces go. Only
our aligner is measured then. It aligns ordinary text (``nmt align --text``), where each ideograph is a word; a word of
the gold is linked if at least half of its characters are.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass, replace
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from measuring import OwnProcess, print_table, report, report_memory

from nmt.alignment import Links, Method, Weights
from nmt.alignment.error_rate import AlignmentScore, Gold, score, score_pair
from nmt.alignment.formats import Alignment, pharaoh_line, read_gold
from nmt.alignment.symmetrize import symmetrize
from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.words import text_words, white_space_words
from nmt.workflows.align import pairs

if TYPE_CHECKING:
    from nmt.extras.aligner.aligner import WordAligner
    from nmt.translator.translator import Translator


EFLOMAL = "eflomal: learning and aligning"
FAST_ALIGN = "fast_align: learning and aligning"


class Text(NamedTuple):
    """Parallel lines."""

    source: list[str]
    target: list[str]


@dataclass(frozen=True)
class Turn:
    """The times of one turn of a system, and its output."""

    seconds: float
    processor_seconds: float
    lines: Any
    """Output of the system: Pharaoh lines, those of both directions for eflomal, or None."""

    def then(self, other: Turn) -> Turn:
        """Returns this turn and the following one as one, with the output of the latter."""
        seconds = self.seconds + other.seconds
        return Turn(seconds, self.processor_seconds + other.processor_seconds, other.lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="training text, one sentence per line; .gz too")
    parser.add_argument("target", type=Path, help="its translation")
    parser.add_argument("--gold", type=Path, nargs=3, metavar=("SOURCE", "TARGET", "LINKS"), required=True)
    parser.add_argument("--model", metavar="RUN", help="a run that translates source to target")
    parser.add_argument("--reverse", metavar="RUN", help="a run that translates target to source")
    parser.add_argument("--threads", type=int, action="append", help="of ours; repeatable; default 1 and 2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pairs", type=int, help="of the training text only the first ones")
    parser.add_argument("--without-spaces", choices=Text._fields, help="take the spaces out of this side")
    given = parser.parse_args(arguments)
    log.set_verbosity(log.Verbosity.QUIET)
    try:
        text, gold_text = read(given.source, given.target, given.pairs), read(*given.gold[:2])
        lengths = [(len(one.split()), len(other.split())) for one, other in zip(*gold_text, strict=True)]
        gold = read_gold(given.gold[2], lengths)
        if given.rounds < 1 or not text.source:
            raise InputError("--rounds and --pairs must be 1 or more, and the training text must hold a line")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "aligner"
            if given.without_spaces is not None:
                side = Text._fields.index(given.without_spaces)
                texts = without_spaces(text, side), without_spaces(gold_text, side)
                compare_speed(*texts, file, None, given.threads or [1, 2], given.rounds, only_ours=True)
                judge_without_spaces(file, gold_text, side, gold)
                print_table()
                return 0
            found = compare_speed(text, gold_text, file, given.model, given.threads or [1, 2], given.rounds)
            if EFLOMAL in found:
                judge_directions("eflomal", gold, *(_of_words(lines, gold_text) for lines in found[EFLOMAL]))
            if FAST_ALIGN in found:
                judge("fast_align, joined", _of_words(found[FAST_ALIGN], gold_text), gold)
            judge_aligner(file, gold_text, gold)
        if given.model is not None:
            judge_models(given.model, given.reverse, gold_text, gold)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print_table()
    return 0


def read(source: Path, target: Path, count: int | None = None) -> Text:
    """Reads the lines of two files, or the first ones. Raises InputError."""
    both = list(islice(pairs(source, target), count))
    return Text([one for one, _ in both], [other for _, other in both])


# --------------------------------------------------------------------------------------------------------------- speed


def compare_speed(
    text: Text,
    gold_text: Text,
    file: Path,
    model: str | None,
    threads: Sequence[int],
    rounds: int,
    *,
    only_ours: bool = False,
) -> dict[str, Any]:
    """Reports the costs of learning and aligning, and leaves our aligner in a file. Returns the output of each system
    for the training text followed by the gold text, by its name."""
    with ExitStack() as stack:

        def start(name: str, *given: Any) -> System:
            system = System(name, *given)
            stack.callback(system.kill)  # where this ends by a fault
            return system

        systems = [] if only_ours else [start(EFLOMAL, _eflomal, 0), start(FAST_ALIGN, _fast_align, 1)]
        for count in threads:
            systems.append(start(f"nmt ({count} threads): learning", _learner, count, file))
            systems.append(start(f"nmt ({count} threads): aligning", _aligner, count, file, only_ours))
            if model is not None:
                systems.append(start(f"trained ({count} threads): aligning", _model_aligner, count, model))
        for system in systems:
            if system.failure is not None:
                print(f"{system.name}: left out: {system.failure}", file=sys.stderr)
        running = [system for system in systems if system.failure is None]
        turns: dict[str, list[Turn]] = {system.name: [] for system in running}
        everything = Text(text.source + gold_text.source, text.target + gold_text.target)
        for _ in range(rounds):
            for system in running:
                turns[system.name].append(system.ask(everything))
        for system in running:
            mine, count = turns[system.name], system.threads
            tell(system.name, mine, count)
            most = system.end()
            if system.name == EFLOMAL:
                report_memory(f"{EFLOMAL}, memory of its own programs", most.started, _machine(count))
                continue
            report_memory(f"{system.name}, memory", most.total, _machine(count))
            if system.name.endswith(": aligning"):
                compare(system.name, mine, turns.get(EFLOMAL, []), count)
        for count in threads:
            name = f"nmt ({count} threads): learning and aligning"
            parts = (turns[f"nmt ({count} threads): {part}"] for part in ("learning", "aligning"))
            mine = [learning.then(aligning) for learning, aligning in zip(*parts, strict=True)]
            tell(name, mine, count)
            compare(name, mine, turns.get(EFLOMAL, []), count)
    return {name: mine[-1].lines for name, mine in turns.items()}


def tell(name: str, turns: Sequence[Turn], threads: int) -> None:
    """Reports the median of several turns."""
    report(name, statistics.median(turn.seconds for turn in turns), "s", _machine(threads))
    processor_seconds = statistics.median(turn.processor_seconds for turn in turns)
    report(f"{name}, processor", processor_seconds, "s", _machine(threads))


def compare(name: str, turns: Sequence[Turn], eflomal: Sequence[Turn], threads: int) -> None:
    """Reports the median of eflomal's seconds over those of the same round; nothing without eflomal."""
    both = list(zip(eflomal, turns, strict=False))
    for unit in ("seconds", "processor_seconds") if both else ():
        ratio = statistics.median(getattr(peer, unit) / getattr(own, unit) for peer, own in both)
        report(f"{name}, times as fast as eflomal, {unit}", ratio, "", _machine(threads))


def _machine(threads: int) -> str:
    return f"cpu ({threads or 'all'} threads, load {os.getloadavg()[0]:.1f})"


def _parsed(line: str) -> Links:
    found = []
    for token in line.split():
        source, _, target = token.partition("-")
        found.append((int(source), int(target)))
    return tuple(found)


Work = Callable[[Text], Any]


class System(OwnProcess[Text, "Turn"]):
    """A process that learns or aligns."""

    def __init__(self, name: str, made_by: Callable[..., Work], threads: int, *given: Any) -> None:
        self.name, self.threads = name, threads
        super().__init__(_serve, made_by, threads, *given)


def _serve(pipe: Connection, made_by: Callable[..., Work], threads: int, *given: Any) -> None:
    log.set_verbosity(log.Verbosity.QUIET)
    if threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        work = made_by(*given)
    except InputError as error:
        pipe.send(str(error))
        return
    pipe.send(None)
    while (text := pipe.recv()) is not None:
        started, before = time.perf_counter(), _processor_seconds()
        lines = work(text)
        pipe.send(Turn(time.perf_counter() - started, _processor_seconds() - before, lines))


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _eflomal() -> Work:
    try:
        import eflomal
    except ImportError:
        raise InputError("eflomal is not installed; pip install '.[eflomal]'") from None
    os.environ.pop("OMP_NUM_THREADS", None)

    def work(text: Text) -> tuple[list[str], list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            files = [str(Path(folder) / name) for name in ("forward", "reverse")]
            eflomal.Aligner().align(*(plain(side) for side in text), *files)
            forward, reverse = (Path(file).read_text().splitlines() for file in files)
            return forward, reverse

    return work


def _fast_align() -> Work:
    try:
        import systran_align
    except ImportError:
        raise InputError("fast_align is not installed; pip install systran-align") from None

    def work(text: Text) -> list[str]:
        sources, targets = (plain(side) for side in text)
        with tempfile.TemporaryDirectory() as folder:
            both, forward, backward = (str(Path(folder) / name) for name in ("text", "forward", "backward"))
            lines = [f"{source} ||| {target}\n" for source, target in zip(sources, targets, strict=True)]
            Path(both).write_text("".join(lines), encoding="utf-8")
            systran_align.generate_alignment_probabilities(
                both, forward, backward, favor_diagonal=True, optimize_tension=True, variational_bayes=True
            )
            aligner = systran_align.Aligner(forward, backward)
            words = ([line.split() for line in side] for side in (sources, targets))
            return [
                " ".join(f"{source}-{target}" for source, target in found["alignments"])
                for found in aligner.align_batch(*words)
            ]

    return work


def plain(lines: Iterable[str]) -> list[str]:
    """Returns the lines in the form that other aligners expect: words and signs in lower case, separated by spaces, in
    our segmentation."""
    words = (" ".join(unicodedata.normalize("NFKC", word).lower() for word in line.split()) for line in lines)
    return [" ".join(line[begin:end] for begin, end in text_words(line)) for line in words]


def _of_words(links: Sequence[str], text: Text) -> list[Links]:
    """Returns the links of the lines of this text, between white-space words, from Pharaoh lines of any text that ends
    in this one."""
    found = []
    for of_pair, *lines in zip(map(_parsed, links[len(links) - len(text.source) :]), *text, strict=True):
        source_words, target_words = (
            [row for row, word in enumerate(line.split()) for _ in plain([word])[0].split()] for line in lines
        )
        found.append(tuple(sorted({(source_words[source], target_words[target]) for source, target in of_pair})))
    return found


def _learner(file: Path) -> Work:
    from nmt.extras.aligner.align import learn_word_aligner
    from nmt.extras.aligner.aligner import save_aligner

    return lambda text: save_aligner(learn_word_aligner(*text), file)


def _aligner(file: Path, as_text: bool) -> Work:
    from nmt.extras.aligner.align import WINDOW_PAIRS, TextAligner
    from nmt.extras.aligner.aligner import load_aligner

    def work(text: Text) -> list[str]:
        learned = TextAligner(load_aligner(file), as_text)
        return _windowed(learned.align, text, WINDOW_PAIRS)

    return work


def _model_aligner(model: str) -> Work:
    import nmt
    from nmt.workflows.align import WINDOW_PAIRS

    translator = nmt.load(model, device="cpu")
    translator.aligner.check_method("trained")

    def work(text: Text) -> list[str]:
        return _windowed(lambda *both: translator.align(*both, method="trained"), text, WINDOW_PAIRS)

    work(Text(["a"], ["a"]))  # reads the aligner, and warms up
    return work


def _windowed(align: Callable[[list[str], list[str]], Sequence[Any]], text: Text, size: int) -> list[str]:
    return [
        pharaoh_line(alignment.links)
        for first in range(0, len(text.source), size)
        for alignment in align(text.source[first : first + size], text.target[first : first + size])
    ]


# ------------------------------------------------------------------------------------------------------------- quality


def judge(name: str, found: Sequence[Links], gold: Sequence[Gold]) -> AlignmentScore:
    """Reports the error rates of links, and the interval that contains AER for 95 % of resamples of the sentence
    pairs."""
    import numpy as np

    from nmt.evaluation.bootstrap import percentile_interval, resampled_sums

    total = score(found, gold)
    pairs_of_gold = [astuple(score_pair(links, of_pair)) for links, of_pair in zip(found, gold, strict=True)]
    _, predicted_R, sure_R, predicted_sure_R, predicted_possible_R = resampled_sums(np.array(pairs_of_gold)).T
    low, high = percentile_interval(1 - (predicted_sure_R + predicted_possible_R) / (predicted_R + sure_R))
    rates = (("AER", total.aer), ("AER, lower end", low), ("AER, upper end", high))
    for what, value in (*rates, ("precision", total.precision), ("recall", total.recall)):
        report(f"{name}: {what}", 100 * value, "%", "cpu")
    return total


def judge_directions(name: str, gold: Sequence[Gold], forward: Sequence[Links], backward: Sequence[Links]) -> None:
    """Reports two directions, and both joined."""
    judge(f"{name}, forward", forward, gold)
    judge(f"{name}, backward", backward, gold)
    joined = [symmetrize(one, other, "grow-diag-final-and") for one, other in zip(forward, backward, strict=True)]
    judge(f"{name}, joined", joined, gold)


def judge_aligner(file: Path, text: Text, gold: Sequence[Gold]) -> None:
    """Reports our aligner, each of its granularities, and the mean of the first ones."""
    from nmt.extras.aligner.aligner import WordAligner, load_aligner

    learnt = load_aligner(file)
    members, hashes = learnt.members, learnt.learnt_P
    judge_matrices("nmt, all granularities", learnt, text, gold)
    for number, member in enumerate(members, 1):
        tokens = f"{len(member.source.number):,} and {len(member.target.number):,} tokens"
        judge_matrices(f"nmt, granularity {number} ({tokens})", WordAligner([member], hashes), text, gold)
    judge_probabilities(learnt, text, gold)
    for number in range(2, len(members)):
        judge_matrices(f"nmt, mean of granularities 1 to {number}", WordAligner(members[:number], hashes), text, gold)


def judge_matrices(name: str, aligner: WordAligner, text: Text, gold: Sequence[Gold]) -> None:
    """Reports the forward matrix, the backward one, and both joined as ``nmt align`` does."""
    import numpy as np

    from nmt.extras.aligner.aligner import RULE

    found = aligner.matrices(*([line.split() for line in side] for side in text))
    ways: dict[str, Callable[[Weights, Weights], Any]] = {
        "forward": lambda forward_IJ, _: forward_IJ,
        "backward": lambda _, backward_IJ: backward_IJ,
        "joined": lambda forward_IJ, backward_IJ: np.sqrt(forward_IJ * backward_IJ, dtype=np.float64),
    }
    for way, of in ways.items():
        judge(f"{name}, {way}", RULE.links_of([of(*matrices) for matrices in found]), gold)


def judge_probabilities(aligner: WordAligner, text: Text, gold: Sequence[Gold]) -> None:
    """Reports how many of the pairs of words with a probability in each tenth are possible links, which calibrated
    probabilities are as often as they say, and the error rates for each least probability of a link."""
    import numpy as np

    from nmt.alignment.extract import Grow

    found = aligner.matrices(*([line.split() for line in side] for side in text))
    weights = [np.sqrt(forward_IJ * backward_IJ, dtype=np.float64) for forward_IJ, backward_IJ in found]
    possible = [np.zeros(each.shape, bool) for each in weights]
    for links, is_possible_IJ in zip(gold, possible, strict=True):
        for source, target in links.possible:
            is_possible_IJ[target, source] = True
    weight_N, is_possible_N = (np.concatenate([each.ravel() for each in side]) for side in (weights, possible))
    tenth_N = np.minimum(10 * weight_N, 9).astype(int)
    for tenth in sorted(set(tenth_N.tolist())):
        is_here_N = tenth_N == tenth
        name = f"nmt, probability {tenth / 10:.1f} to {tenth / 10 + 0.1:.1f}"
        report(f"{name}: pairs of words", int(is_here_N.sum()), "", "cpu")
        report(f"{name}: mean", 100 * weight_N[is_here_N].mean(), "%", "cpu")
        report(f"{name}: possible links", 100 * is_possible_N[is_here_N].mean(), "%", "cpu")
    for least in (0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        judge(f"nmt, --min-probability {least}", Grow(threshold=least).links_of(weights), gold)


def without_spaces(text: Text, side: int) -> Text:
    """Returns a text in which the words of one side are written together, in ideographs that replace letters."""
    sides = list(text)
    sides[side] = ["".join(map(_ideographs, line.split())) for line in text[side]]
    return Text(*sides)


def _ideographs(word: str) -> str:
    return "".join(chr(0x4E00 + ord(each)) if each.isalpha() and each < "\u4e00" else each for each in word.lower())


def judge_without_spaces(file: Path, text: Text, side: int, gold: Sequence[Gold]) -> None:
    """Reports our aligner and each of its granularities for a text whose one side loses its spaces."""
    from nmt.extras.aligner.align import TextAligner
    from nmt.extras.aligner.aligner import WordAligner, load_aligner

    learnt = load_aligner(file)
    members = learnt.members
    lines, unspaced = text[side], without_spaces(text, side)
    for name, used in (("all granularities", members), *((f"granularity {i}", [m]) for i, m in enumerate(members, 1))):
        found = TextAligner(WordAligner(used, learnt.learnt_P), text=True).align(*unspaced)
        links = [_of_characters(*pair, side) for pair in zip(found, lines, text[1 - side], strict=True)]
        judge(f"nmt, {name}, joined", links, gold)


def _of_characters(alignment: Alignment, line: str, other: str, side: int) -> Links:
    """Returns the links between white-space words; in a line without spaces a pair is linked if half of the characters
    of its word are linked. ``line`` still has its spaces."""
    words = [_ideographs(word) for word in line.split()]
    word_at = [number for number, word in enumerate(words) for _ in word]
    word_in_other = {at: number for number, span in enumerate(white_space_words(other)) for at in range(*span)}
    spans = [alignment.source_spans or (), alignment.target_spans or ()]
    linked: set[tuple[int, int]] = set()
    for link in alignment.links:
        here, there = (spans[each][link[each]] for each in (side, 1 - side))
        linked |= {(at, word_in_other[begin]) for at in range(*here) for begin in range(*there)}
    counts = Counter((word_at[at], number) for at, number in linked)
    pairs = (pair for pair, count in counts.items() if 2 * count >= len(words[pair[0]]))
    return tuple(sorted((one, two) if side == 0 else (two, one) for one, two in pairs))


def judge_models(model: str, reverse: str | None, text: Text, gold: Sequence[Gold]) -> None:
    """Reports the links that a run, or two, find by attention, gradients and the aligners that they learnt."""
    import nmt

    forward = nmt.load(model, device="cpu", precision="float32")
    backward = None if reverse is None else nmt.load(reverse, device="cpu", precision="float32")
    for name, asked in _ways(forward).items():
        one = asked(forward, text)
        judge(f"model, {name}", one, gold)
        if backward is None or name == "trained" or name not in _ways(backward):
            continue
        turned = asked(backward, Text(text.target, text.source))
        other = [tuple(sorted((source, target) for target, source in links)) for links in turned]
        judge(f"reverse model, {name}", other, gold)
        joined = [symmetrize(*both, "grow-diag-final-and") for both in zip(one, other, strict=True)]
        judge(f"both models, {name}", joined, gold)


def _ways(translator: Translator) -> dict[str, Callable[[Translator, Text], list[Links]]]:
    """Returns the methods by which a model can align, by name."""

    def by(method: Method, heads: str | None = None) -> Callable[[Translator, Text], list[Links]]:
        def links(model: Translator, text: Text) -> list[Links]:
            if heads is not None:
                model = replace(model, heads=heads)
            return [each.links for each in model.align(*text, method=method)]

        return links

    found = {method: by(method) for method in translator.aligner.methods}
    layers = dict.fromkeys(name.partition(".")[0] for name in translator.trained.model.decoder.head_names)
    ways: dict[str, Callable[[Translator, Text], list[Links]]] = {}
    for method, links in found.items():
        ways[method] = links
        if method in ("attention", "shifted-attention") and len(layers) > 1:
            ways |= {f"{method} of {layer}": by(method, f"{layer}.*") for layer in layers}
    return ways


if __name__ == "__main__":
    sys.exit(main())
