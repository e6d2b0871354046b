"""Speed of a model of the size of OPUS-MT's: Hugging Face's transformers, CTranslate2 and nmt, in turn, on a CPU.

    python scripts/benchmark_hf.py [--sentences 64] [--length 24] [--threads 2] [--rounds 3] [--beam 4] [--tiny]

The model is as those of OPUS-MT are: 6 + 6 layers of 512, 8 heads, feed-forward 2048, 60,000 subwords, one table of
embeddings. No trained one is needed for its speed: weights are random, sources are random subwords of ``--length``, and
every translation has that length, because end-of-sentence is made improbable and the length limited. ``generate`` of
transformers gets the fastest of some sizes of batches, CTranslate2 the threads that it is asked for; nmt translates in
float32 and int8. Each is a process of its own; they translate in turn, a round to warm up and ``--rounds`` that count,
of which the median is told. Prints a JSON line for each figure and a table on stderr: sentences/s, and how many times
as fast each is as transformers. ``--tiny`` is a small model, to try the script. Needs transformers and CTranslate2.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from measuring import OwnProcess, plainly, print_table, report

SYSTEMS = ("transformers", "ctranslate2:float32", "ctranslate2:int8", "nmt:float32", "nmt:int8")
BATCHES = (8, 16, 32, 64)
"""Sizes of batches that transformers tries, in sentences."""


@dataclass(frozen=True)
class Task:
    """The text to translate, and the settings."""

    folder: Path
    """Folder with the MarianMT folder, and the run made of it."""
    rows: list[list[int]]
    """Sources, as ids of the MarianMT folder."""
    length: int
    beam: int
    threads: int


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--length", type=int, default=24, help="subwords of each source and translation")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tiny", action="store_true", help="a small model, to try the script")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        vocabulary = make_model(folder, tiny=arguments.tiny)
        random = np.random.default_rng(1)
        rows = random.integers(2, vocabulary - 1, (arguments.sentences, arguments.length)).tolist()
        task = Task(folder, rows, arguments.length, arguments.beam, arguments.threads)
        systems: dict[str, OwnProcess[int, float]] = {system: OwnProcess(serve, system, task) for system in SYSTEMS}
        for system in systems.values():
            stack.callback(system.kill)
        seconds: dict[str, list[float]] = {system: [] for system in systems}
        for number in range(arguments.rounds + 1):
            for name, system in systems.items():
                taken = system.ask(number)
                if number > 0:
                    seconds[name].append(taken)
        machine = f"cpu ({arguments.threads} threads), beam {arguments.beam}"
        medians = {name: statistics.median(taken) for name, taken in seconds.items()}
        for name, taken in medians.items():
            report(name, len(rows) / taken, "sentences/s", machine)
            report(f"{name}, times as fast as transformers", medians["transformers"] / taken, "x", machine)
    print_table()


def make_model(folder: Path, *, tiny: bool) -> int:
    """Writes a MarianMT folder of random weights, its run and the run's export for CTranslate2; returns the number of
    its subwords."""
    import sentencepiece

    from nmt.extras.exchange.convert.from_marian import import_hf
    from nmt.extras.exchange.export.export_model import export

    transformers: Any = import_module("transformers")
    there = folder / "marian"
    there.mkdir()
    size = 1000 if tiny else 60_000
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d e f g h"] * 10), model_writer=model, vocab_size=20, hard_vocab_limit=False
    )
    for name in ("source.spm", "target.spm"):
        (there / name).write_bytes(model.getvalue())
    pieces = ["</s>", "<unk>", *(f"\u2581{number}" for number in range(size - 3)), "<pad>"]
    ids = {piece: number for number, piece in enumerate(pieces)}
    (there / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    (layers, width, heads, inside) = (2, 32, 4, 64) if tiny else (6, 512, 8, 2048)
    torch.manual_seed(1)
    config = transformers.MarianConfig(
        vocab_size=size, d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=inside, decoder_ffn_dim=inside, activation_function="swish",
        scale_embedding=True, max_position_embeddings=512, pad_token_id=size - 1, decoder_start_token_id=size - 1,
        eos_token_id=0, forced_eos_token_id=0,
    )  # fmt: skip
    random = transformers.MarianMTModel(config)
    random.final_logits_bias[0, 0] = -1000.0
    random.generation_config = transformers.GenerationConfig(
        bad_words_ids=[[size - 1]], pad_token_id=size - 1, decoder_start_token_id=size - 1, eos_token_id=0,
        renormalize_logits=True, max_length=512, num_beams=4,
    )  # fmt: skip
    random.save_pretrained(there)
    import_hf(there, folder / "run")
    export(str(folder / "run"), [], to="ctranslate2", output=None)
    return size


def serve(pipe: Connection, system: str, task: Task) -> None:
    """Answers each question with the seconds of a translation of all sources."""
    torch.set_num_threads(task.threads)
    if system == "transformers":
        transformers: Any = import_module("transformers")
        model = transformers.MarianMTModel.from_pretrained(task.folder / "marian").eval()

        def generate(batch: int) -> float:
            begin = time.perf_counter()
            for first in range(0, len(task.rows), batch):
                x = torch.tensor([[*row, 0] for row in task.rows[first : first + batch]])
                with torch.inference_mode():
                    model.generate(
                        input_ids=x, attention_mask=torch.ones_like(x), num_beams=task.beam, max_length=task.length + 1
                    )
            return time.perf_counter() - begin

        fastest = min(BATCHES, key=generate)
        pipe.send(None)
        while pipe.recv() is not None:
            pipe.send(generate(fastest))
        return
    import nmt

    name, _, precision = system.partition(":")
    engine: Literal["nmt", "ctranslate2"] = "nmt" if name == "nmt" else "ctranslate2"
    overrides = [f"search.beam={task.beam}", f"search.max_length={task.length - 1}"]  # and end-of-sentence
    translator = nmt.load(task.folder / "run", device="cpu", precision=precision, engine=engine, overrides=overrides)
    imported = translator.trained.tokenizers.source.imported
    assert imported is not None
    ours = {theirs: number for number, theirs in enumerate(imported.order)}
    sources = [[ours[token] for token in row] for row in task.rows]
    pipe.send(None)
    while pipe.recv() is not None:
        begin = time.perf_counter()
        translator.engine.translate_ids(sources, translator.search)
        pipe.send(time.perf_counter() - begin)


if __name__ == "__main__":
    plainly(main)
