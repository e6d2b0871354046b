"""``nmt serve`` with a trained model: the same answers as without it, and how its process begins and ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

import nmt as package
from nmt.core.errors import InputError
from nmt.experiment import Experiment
from nmt.extras.service.app import create_app
from nmt.extras.service.batcher import Answer, Batcher, Batching, Done, RequestOptions
from nmt.extras.service.engine import TranslatorEngine
from nmt.extras.service.messages import Limits
from nmt.extras.service.metrics import ServerMetrics
from nmt.search.config import SearchConfig
from nmt.translator.translator import Translator
from tests.extras.service.fakes import Client
from tests.workflows.runs import nmt
from tests.workflows.test_commands import error
from tests.workflows.test_translate_options import records

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return package.load(trained / "run", device="cpu", precision="float32")


def test_fifty_requests_at_once_get_what_each_gets_alone(trained: Path, translator: Translator) -> None:
    lines = [line for side in ("train", "test") for line in (trained / f"{side}.de").read_text().splitlines()][:60]
    lines[7] = lines[31] = ""
    requests = [lines[n : n + 1 + n % 3] for n in range(50)]
    alone = {line: translator.candidates([line])[0] for line in lines}
    ready, done = threading.Event(), list[Done]()
    # what begins while the first waits for company shares its batches
    batcher = Batcher(
        lambda: TranslatorEngine(translator), Batching(wait_s=0.5), on_ready=ready.set, on_done=done.append
    )

    async def talk() -> list[httpx.Response]:
        client = Client(create_app(batcher, Limits(), ServerMetrics()))
        return await asyncio.gather(*(client.translate(texts) for texts in requests))

    batcher.start()
    assert ready.wait(20)
    responses = asyncio.run(talk())
    batcher.close()
    batcher.join(20)
    assert not batcher.is_alive()
    for texts, response in zip(requests, responses, strict=True):
        results = response.json()["results"]
        assert [(each["line"], each["source"]) for each in results] == list(enumerate(texts, 1))
        for result in results:
            (found,), (expected,) = result["translations"], alone[result["source"]]
            assert (found["text"], tuple(found["tokens"])) == (expected.text, expected.tokens)
            assert found["score"] == pytest.approx(expected.score, rel=1e-6, abs=2e-6)
    sizes = [each.sentences for each in done]
    assert sum(sizes) == sum(len(texts) for texts in requests)
    assert len(sizes) <= len(responses) / 5


def test_answers_are_those_of_translate_in_jsonl(trained: Path, translator: Translator) -> None:
    engine = TranslatorEngine(translator)
    texts = ["der hund", "", "eine katze und ein hund", "der hund"]
    options = {
        ("--n-best", "3", "--alignment"): RequestOptions(3, None, True),
        ("--beam", "2"): RequestOptions(None, 2),
    }
    for arguments, wanted in options.items():
        lines = records(trained, *arguments)
        answers = engine.answer(texts, wanted, lambda: None)
        trees = [{"line": number, **json.loads(json.dumps(each.tree))} for number, each in enumerate(answers, 1)]
        assert without_numbers(trees) == without_numbers(lines)
        assert numbers(trees) == pytest.approx(numbers(lines), abs=2e-6)
        assert [each.tokens for each in answers] == [
            sum(len(found["tokens"]) for found in line["translations"]) for line in lines
        ]
    assert translator.search.n_best == 1  # what a request asks for is its own


def without_numbers(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: without_numbers(value) for key, value in tree.items()}
    return [without_numbers(each) for each in tree] if isinstance(tree, list) else tree if isinstance(tree, str) else 0


def numbers(tree: Any) -> list[float]:
    if isinstance(tree, (dict, list)):
        inside = tree.values() if isinstance(tree, dict) else tree
        return [number for each in inside for number in numbers(each)]
    return [] if isinstance(tree, str) else [float(tree)]


def test_a_translation_within_another_changes_neither(translator: Translator) -> None:
    """The library's fast decoders are used."""
    engine, options = TranslatorEngine(translator), RequestOptions(alignment=True)
    texts, others = ["eine katze und ein hund", "der hund"], ["drei", "ein hund und eine katze"]
    within: list[list[Answer]] = []

    def on_step() -> None:
        within.append(engine.answer(others, options, lambda: None))

    assert engine.answer(texts, options, on_step) == engine.answer(texts, options, lambda: None)
    assert len(within) > 1
    assert within == [engine.answer(others, options, lambda: None)] * len(within)
    assert engine.subwords(texts) == [len(translator.trained.tokenizers.source.encode(text)) for text in texts]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_heavy_request_holds_up_nobody_and_its_work_ends_with_its_client(trained: Path) -> None:
    """The search never ends by itself: the heavy text takes 100,000 steps, the other one some hundreds."""
    search = {"min_length": 1_000_000, "max_length_ratio": 100, "split_longer_than": "null", "beam": 2}
    changes = [word for key, value in search.items() for word in ("--set", f"search.{key}={value}")]
    with (
        served(trained, *changes) as (process, address, _),
        httpx.Client(base_url=address, trust_env=False, timeout=60) as client,
    ):
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as heavy:
            body = json.dumps({"text": "hund " * 400})
            head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            heavy.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            heavy.settimeout(0.2)
            with pytest.raises(TimeoutError):
                heavy.recv(1)
            assert client.post("/translate", json={"text": "der"}).status_code == 200
            with pytest.raises(TimeoutError):
                heavy.recv(1)
            assert processor_s(process.pid, 0.5) > 0.05  # it is still at work
        for _ in range(20):
            if used := processor_s(process.pid, 0.5) < 0.05:
                break
        assert used, "it works on for nobody"
        assert client.post("/translate", json={"text": "der"}).status_code == 200


def processor_s(pid: int, seconds: float) -> float:
    """Processor time of a process in so many seconds."""
    used = []
    for _ in range(2):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        used.append(sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK"))
        time.sleep(seconds if len(used) == 1 else 0)
    return used[1] - used[0]


def test_what_is_cut_is_told(translator: Translator) -> None:
    short = replace(
        translator, search=translator.search.model_copy(update={"max_source_tokens": 8, "split_longer_than": None})
    )
    texts, options = ["der", "eine katze und ein hund"], RequestOptions(alignment=True)
    whole, cut = TranslatorEngine(short).answer(texts, options, lambda: None)
    assert whole.warning is None
    assert re.fullmatch(r"its last \d+ subwords are left out: it has more than 8", cut.warning or "")
    assert cut.tree["translations"][0]["alignment"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (RequestOptions(n_best=6), "n_best: 6 is more than this server allows, 5"),
        (RequestOptions(beam=6), "beam: 6 is more than this server allows, 5"),
        (RequestOptions(n_best=3, beam=2), "n_best: 3 translations need as many beams, not 2; set beam to 3"),
        (RequestOptions(to="en"), "to: this model does not translate into 'en'; leave it out"),
        (RequestOptions(alignment=True), "alignment: this model has no attention to align by; leave it out"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value),
)
def test_what_a_model_cannot_do_is_refused(options: RequestOptions, message: str) -> None:
    plain = SimpleNamespace(
        search=SearchConfig(),
        aligner=SimpleNamespace(methods=("gradient",)),
        trained=SimpleNamespace(
            checkpoint=Path("runs/x/best"),
            experiment=Experiment.model_construct(
                data=SimpleNamespace(target_languages=(), train_corpora=(), context=0),
                search=SearchConfig(),  # type: ignore[arg-type]
            ),
        ),
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        TranslatorEngine(cast(Translator, plain)).check(options)
    TranslatorEngine(cast(Translator, plain)).check(RequestOptions(n_best=5, beam=5))


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """A server in another process that is ready, its address, and what it says further."""
    command = [sys.executable, "-m", "nmt", "serve", "run", "--port", "0", "--precision", "float32", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith("ready: "):
                    break
            assert said[-1:], "it has ended"
            yield process, said[-1].split()[1], said
        finally:
            process.kill()


def ask(address: str, found: list[httpx.Response], **headers: str) -> threading.Thread:
    """Sends a request that waits."""

    def send() -> None:
        found.append(
            httpx.post(f"{address}/translate", json={"text": "der hund"}, headers=headers, timeout=30, trust_env=False)
        )

    thread = threading.Thread(target=send)
    thread.start()
    for _ in range(1000):
        if "nmt_queue_sentences 1.0" in httpx.get(f"{address}/metrics", trust_env=False).text:
            return thread
        time.sleep(0.01)
    raise AssertionError("the request has not come into the queue")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_terminated_it_answers_what_has_come_and_exits_0(trained: Path, translator: Translator) -> None:
    with served(trained, "--wait", "20000") as (process, address, said):
        host, port = address.removeprefix("http://").split(":")
        assert host == "127.0.0.1"
        taken = nmt("serve", "run", "--port", port, folder=trained)
        assert error(taken).startswith(f"--port {port}: cannot be had on 127.0.0.1: Address already in use; choose")
        found: list[httpx.Response] = []
        waiting = ask(address, found)
        process.send_signal(signal.SIGTERM)
        waiting.join(20)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert [line.partition(":")[0] for line in said] == ["model", "ready"]
    (translation,) = translator.translate(["der hund"])
    assert found[0].status_code == 200
    assert found[0].json()["results"][0]["translations"][0]["text"] == translation.text


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_interrupted_it_exits_130_even_while_clients_hold_connections(trained: Path) -> None:
    with served(trained) as (process, address, _):
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as held:
            held.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert held.recv(100).startswith(b"HTTP/1.1 200 OK")
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "no.such.host.invalid"], "--host no.such.host.invalid: "),
        (["--precision", "float16", "--device", "cpu", "--port", "0"], "--precision float16: is for CUDA devices"),
        (["--port", "0", "--allowed-hosts", "http://x"], "--allowed-hosts http://x: must be a name such as"),
        (["--port", "0", "--api-key-file", "no.key"], "--api-key-file no.key: No such file or directory"),
    ],
    ids=["before the model is loaded", "by loading it", "hosts", "key"],
)
def test_what_keeps_it_from_serving_is_one_line(trained: Path, arguments: list[str], message: str) -> None:
    done = nmt("serve", "run", "--quiet", *arguments, folder=trained)
    assert error(done).startswith(message)
