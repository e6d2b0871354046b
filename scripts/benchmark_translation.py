"""Translation speed of a trained model by each engine and precision, side by side.

    python scripts/benchmark_translation.py MODEL SOURCE [--reference FILE] [--beam 1 --beam 5] [--threads 2]
        [--device cuda] [--system nmt:bfloat16 --system ctranslate2:int8 --system direct:int8 ...]

A system is an engine and a precision: ``nmt`` is our own search, ``ctranslate2`` is ``nmt translate --engine
ctranslate2``, and ``direct`` is CTranslate2 called by a few lines of Python, as one would without us; both need ``nmt
export MODEL``. Left out, all that the machine and the model allow are compared.

Several threads are what is fastest of each: windows at once for our search (``nmt translate --workers``), batches at
once for CTranslate2, of the size that is fastest there. Text goes in and text comes out; loading does not
count. Each system is a process of its own, and they translate in turn (A B A B ...): a round to warm up, then
``--rounds`` that count, of which the median is told. For each beam and system: sentences/s, subwords/s, what single
sentences take (median and 95th percentile), BLEU and the share of sentences translated as by nmt:float32, and the
largest memory of the process and those it starts together. Prints a JSON line for each figure, and a table on stderr.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from measuring import OwnProcess, plainly, print_table, report, report_memory

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.lines import Line
from nmt.data.corpus import read_lines

SYSTEMS = (
    "nmt:float32",
    "nmt:bfloat16",
    "nmt:int8",
    "ctranslate2:float32",
    "direct:float32",
    "ctranslate2:int8",
    "direct:int8",
)
SINGLE = 50
"""Number of sentences that are translated one by one, for the latency."""


@dataclass(frozen=True)
class Turn:
    """The results of one turn of a system."""

    seconds: float
    texts: list[str]
    subwords: int


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("--reference", type=Path, help="for BLEU")
    parser.add_argument("--beam", type=int, action="append", help="repeatable; default 1 and 5")
    parser.add_argument("--system", action="append", metavar="ENGINE:PRECISION", help="repeatable; see above")
    parser.add_argument("--device", default="cpu", help="of our own search; several threads are for cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    lines = list(read_lines(arguments.source))
    references = None if arguments.reference is None else list(read_lines(arguments.reference))
    for beam in arguments.beam or [1, 5]:
        overrides = [*arguments.overrides, f"search.beam={beam}"]
        wanted = arguments.system or list(SYSTEMS)
        with ExitStack() as stack:
            systems = {
                name: System(name, arguments.model, overrides, arguments.device, arguments.threads) for name in wanted
            }
            for system in systems.values():
                stack.callback(system.kill)  # where this ends by a fault
            machine = f"{arguments.device} ({arguments.threads} threads)"
            compare(systems, lines, references, beam, machine, arguments.rounds)
    print_table()


def compare(
    systems: dict[str, System],
    lines: Sequence[str],
    references: Sequence[str] | None,
    beam: int,
    machine: str,
    rounds: int,
) -> None:
    """Reports the figures of one beam size."""
    for system, started in systems.items():
        if started.failure is not None:
            print(f"{system}: left out: {started.failure}", file=sys.stderr)
    running = {system: started for system, started in systems.items() if started.failure is None}
    turns: dict[str, list[Turn]] = {system: [] for system in running}
    for number in range(rounds + 1):
        for system, process in running.items():
            turn = process.ask(lines)
            if number > 0:
                turns[system].append(turn)
    baseline = turns["nmt:float32"][0].texts if "nmt:float32" in turns else None
    for system, process in running.items():
        mine = turns[system]
        name = f"{system} beam {beam}"
        seconds = statistics.median(each.seconds for each in mine)
        report(f"{name}: sentences", len(lines) / seconds, "sentences/s", machine)
        report(f"{name}: subwords", mine[0].subwords / seconds, "subwords/s", machine)
        latencies = sorted(process.ask([line]).seconds for line in lines[:SINGLE])
        report(f"{name}: latency, median", 1000 * statistics.median(latencies), "ms", machine)
        report(f"{name}: latency, 95th percentile", 1000 * latencies[int(0.95 * len(latencies))], "ms", machine)
        if references is not None:
            import sacrebleu

            report(f"{name}: BLEU", sacrebleu.corpus_bleu(mine[0].texts, [list(references)]).score, "BLEU", machine)
        if baseline is not None:
            same = sum(one == other for one, other in zip(mine[0].texts, baseline, strict=True))
            report(f"{name}: same as nmt:float32", same / len(lines), "of sentences", machine)
        report_memory(f"{name}: memory", process.end().total, machine)


class System(OwnProcess[Sequence[str], "Turn"]):
    """An engine with a model."""

    def __init__(self, system: str, model: str, overrides: Sequence[str], device: str, threads: int) -> None:
        super().__init__(_serve, system, model, overrides, device, threads)


def _serve(pipe: Connection, system: str, model: str, overrides: Sequence[str], device: str, threads: int) -> None:
    log.set_verbosity(log.Verbosity.QUIET)
    import torch

    torch.set_num_threads(threads)
    engine, _, precision = system.partition(":")
    stack = ExitStack()
    try:
        if engine == "direct":
            translate = _direct(model, overrides, precision, threads)
        else:
            translate = _own(model, overrides, engine, device, precision, stack, threads)
    except InputError as error:
        pipe.send(str(error))
        return
    with stack:
        pipe.send(None)
        while (lines := pipe.recv()) is not None:
            started = time.perf_counter()
            texts, subwords = translate(lines)
            pipe.send(Turn(time.perf_counter() - started, texts, subwords))


Translate = Callable[[list[str]], tuple[list[str], int]]


def _own(
    model: str, overrides: Sequence[str], engine: str, device: str, precision: str, stack: ExitStack, threads: int
) -> Translate:
    """Translates as ``nmt translate`` does."""
    import nmt
    from nmt.translator.windows import OutputOptions, Window
    from nmt.translator.workers import Workers
    from nmt.workflows.translate import BESIDE, IN_THREADS, SHARED_LINES, WINDOW_LINES

    if engine not in ("nmt", "ctranslate2"):
        raise InputError(f"--system {engine}: is none of nmt, ctranslate2, direct")
    translator = nmt.load(model, device=device, precision=precision, overrides=overrides, engine=engine)
    gc.freeze()  # a full collection would scan all of PyTorch, a tenth of a second
    workers, loading, full = BESIDE, None, WINDOW_LINES
    if engine == "nmt":
        run, workers, full = translator.trained.checkpoint, threads, 1
        if threads > IN_THREADS:
            loading = partial(nmt.load, run, device=device, precision=precision, overrides=overrides)
    shared = stack.enter_context(Workers(translator, OutputOptions(), loading, count=workers, full=full, after=1))

    def translate(lines: list[str]) -> tuple[list[str], int]:
        size = WINDOW_LINES
        if engine == "nmt":
            size = -(-len(lines) // (workers * max(round(len(lines) / (workers * SHARED_LINES)), 1)))
        numbered = [Line(number, text, None) for number, text in enumerate(lines, 1)]
        windows = (Window(numbered[start : start + size]) for start in range(0, len(lines), size))
        answers = [result() for _, result in shared.translate(windows)]
        return "".join(each.text for each in answers).splitlines(), sum(each.subwords for each in answers)

    return translate


def _direct(model: str, overrides: Sequence[str], precision: str, threads: int) -> Translate:
    """Translates by a few lines that use CTranslate2 and SentencePiece directly."""
    import ctranslate2
    import sentencepiece

    from nmt import experiment as experiments
    from nmt.extras.exchange.export.engine import BATCH_TOKENS
    from nmt.translator.find_run import find_checkpoint, run_of

    run = run_of(find_checkpoint(model))
    search = experiments.load(run / experiments.FILE, overrides).search
    if not (run / "exported" / "ctranslate2").exists() or not (run / "subwords.model").exists():
        raise InputError(f"{run}: there is no export to CTranslate2 with a joint vocabulary")
    translator = ctranslate2.Translator(
        str(run / "exported" / "ctranslate2"), compute_type=precision, inter_threads=threads, intra_threads=1
    )
    subwords = sentencepiece.SentencePieceProcessor(model_file=str(run / "subwords.model"))

    def translate(lines: list[str]) -> tuple[list[str], int]:
        results = translator.translate_batch(
            subwords.encode(lines, out_type=str),
            beam_size=search.beam,
            max_batch_size=min(search.batch_tokens // search.beam, BATCH_TOKENS),
            batch_type="tokens",
            max_decoding_length=100,
        )
        found = [each.hypotheses[0] for each in results]
        return subwords.decode(found), sum(map(len, found))

    return translate


if __name__ == "__main__":
    plainly(main)
