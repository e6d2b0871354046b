"""`nmt serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from nmt.cli.options import (
    BatchTokens,
    Beam,
    Device,
    LengthPenalty,
    MaxLengthRatio,
    Model,
    Overrides,
    Quiet,
    UsePrecision,
    Verbose,
    check_model,
    set_verbosity,
    with_search,
)
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused
from nmt.core.onednn_cache import limit_caches_for_translation
from nmt.extras.serve import check_installed


def serve(
    model: Model = None,
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="Address to listen at; 0.0.0.0 is all this machine has.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port to listen at; 0 is any free one.")
    ] = 8000,
    batch_sentences: Annotated[
        int, typer.Option("--batch-sentences", metavar="N", min=1, help="Sentences translated together, at most.")
    ] = 32,
    batch_characters: Annotated[
        int, typer.Option("--batch-characters", metavar="N", min=1, help="Characters of those, at most.")
    ] = 8000,
    wait: Annotated[
        float,
        typer.Option("--wait", metavar="MS", min=0, help="Milliseconds that a request waits for others to join it."),
    ] = 5.0,
    queue: Annotated[
        int, typer.Option("--queue", metavar="N", min=1, help="Sentences that wait, at most; more are answered 429.")
    ] = 1024,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", min=0.001, help="Seconds that a request may take.")
    ] = 60.0,
    grace: Annotated[
        float, typer.Option("--grace", metavar="S", min=0, help="Seconds to finish the queue when asked to end.")
    ] = 30.0,
    max_body: Annotated[
        int, typer.Option("--max-body", metavar="BYTES", min=1, help="Bytes of a request, at most.")
    ] = 1 << 20,
    max_sentences: Annotated[
        int, typer.Option("--max-sentences", metavar="N", min=1, help="Texts of a request, at most.")
    ] = 256,
    max_characters: Annotated[
        int, typer.Option("--max-characters", metavar="N", min=1, help="Characters of a text, at most.")
    ] = 2000,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    max_length_ratio: MaxLengthRatio = None,
    batch_tokens: BatchTokens = None,
    ensemble: Annotated[
        list[str] | None,
        typer.Option(
            "--ensemble", metavar="MODEL", help="A further model that translates together with MODEL; repeatable."
        ),
    ] = None,
    device: Device = "auto",
    precision: UsePrecision = "auto",
    overrides: Overrides = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Serve translations over HTTP, with a page to try them.

    POST /translate takes {"text": "..."}; what many clients send at once is translated together. The page is at /, the
    API at /docs, counts for Prometheus at /metrics."""
    set_verbosity(quiet=quiet, verbose=verbose)
    if max_sentences > queue:
        raise InputError(f"--max-sentences {max_sentences}: such a request has no room in --queue {queue}")
    check_installed()
    changes = with_search(overrides, beam, length_penalty, max_length_ratio, batch_tokens)
    check_model(model, changes)
    for other in ensemble or []:
        check_model(other, [])
    from nmt.extras.serve.listening import bind

    with bind(host, port) as listening:
        limit_caches_for_translation()
        with gc_paused():
            from nmt.extras.serve import translation_engine as workflow
            from nmt.extras.serve.batcher import Batching
            from nmt.extras.serve.messages import Limits

        workflow.serve(
            model,
            changes,
            listening=listening,
            batching=Batching(batch_sentences, batch_characters, wait / 1000, queue),
            limits=Limits(max_body, max_sentences, max_characters, timeout),
            grace_s=grace,
            ensemble=ensemble or [],
            device=device,
            precision=precision,
        )
