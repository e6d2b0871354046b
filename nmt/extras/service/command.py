"""`nmt serve`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options import ModelOptions, check_model, search_option, with_options
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused, limit_caches_for_translation
from nmt.extras.service.listening import api_key, bind, check_installed, connections_at_most, host_names

_network = partial(typer.Option, rich_help_panel="Network")
_batches = partial(typer.Option, rich_help_panel="Batches")
_limits = partial(typer.Option, rich_help_panel="Limits")


@dataclass(frozen=True)
class ServeOptions(ModelOptions):
    """The options of `nmt serve`."""

    host: Annotated[
        str, _network("--host", metavar="HOST", help="Address to listen at; 0.0.0.0 is every address of this machine.")
    ] = "127.0.0.1"
    port: Annotated[
        int, _network("--port", metavar="N", min=0, max=65535, help="Port to listen at; 0 is any free one.")
    ] = 8000
    batch_sentences: Annotated[
        int, _batches("--batch-sentences", metavar="N", min=1, help="Maximum sentences per batch.")
    ] = 32
    batch_characters: Annotated[
        int, _batches("--batch-characters", metavar="N", min=1, help="Maximum characters per batch.")
    ] = 8000
    wait: Annotated[
        float, _batches("--wait", metavar="MS", min=0, help="Milliseconds that a request waits for others to join it.")
    ] = 5.0
    queue: Annotated[
        int, _batches("--queue", metavar="N", min=1, help="Maximum waiting sentences; others get status 429.")
    ] = 1024
    timeout: Annotated[
        float, _limits("--timeout", metavar="S", min=0.001, help="Seconds for each of reading, answering and sending.")
    ] = 60.0
    grace: Annotated[
        float, _limits("--grace", metavar="S", min=0, help="Seconds to finish the queue when the server is stopped.")
    ] = 30.0
    idle: Annotated[
        int, _limits("--idle", metavar="S", min=1, help="Seconds that a connection may take to send a request.")
    ] = 15
    max_connections: Annotated[
        int, _limits("--max-connections", metavar="N", min=1, help="Maximum connections; ulimit -n may lower it.")
    ] = 1000
    max_client_connections: Annotated[
        int | None,
        _limits(
            "--max-client-connections", metavar="N", min=1, help="Maximum connections from one address. Default: half."
        ),
    ] = None
    allowed_hosts: Annotated[
        list[str] | None, _network("--allowed-hosts", metavar="NAMES", help="Further names of this server; *: any.")
    ] = None
    api_key_file: Annotated[
        Path | None, _network("--api-key-file", metavar="FILE", help="Key that clients need; or set NMT_API_KEY.")
    ] = None
    max_body: Annotated[int, _limits("--max-body", metavar="BYTES", min=1, help="Maximum bytes of a request.")] = (
        1 << 20
    )
    max_sentences: Annotated[int, _limits("--max-sentences", metavar="N", min=1, help="Maximum texts per request.")] = (
        256
    )
    max_characters: Annotated[
        int, _limits("--max-characters", metavar="N", min=1, help="Maximum characters, and subwords, per text.")
    ] = 2000
    ensemble: Annotated[
        list[str] | None,
        search_option(
            "--ensemble", metavar="MODEL", help="Another model that translates together with MODEL; repeatable."
        ),
    ] = None


@with_options(ServeOptions, ())
def serve(options: ServeOptions) -> None:
    """Serve translations over HTTP, with a page to try them.

    POST /translate takes {"text": "..."}; requests that arrive at the same time share a batch. The page is at /, the
    API at /docs, and metrics for Prometheus at /metrics."""
    if options.max_sentences > options.queue:
        raise InputError(
            f"--max-sentences {options.max_sentences}: such a request has no room in --queue {options.queue}"
        )
    check_installed()
    connections = connections_at_most(options.max_connections)
    hosts, key = host_names(options.host, options.allowed_hosts or []), api_key(options.api_key_file)
    clients = connections, options.max_client_connections or (connections + 1) // 2, hosts, key
    changes = options.changes
    check_model(options.model, changes)
    for other in options.ensemble or []:
        check_model(other, [])

    with bind(options.host, options.port) as listening:
        limit_caches_for_translation()
        with gc_paused():
            from nmt.extras.service import translation_engine as workflow
            from nmt.extras.service.batcher import Batching
            from nmt.extras.service.messages import Limits

        workflow.serve(
            options.model,
            changes,
            listening=listening,
            batching=Batching(options.batch_sentences, options.batch_characters, options.wait / 1000, options.queue),
            limits=Limits(
                options.max_body, options.max_sentences, options.max_characters, options.timeout, options.idle, *clients
            ),
            grace_s=options.grace,
            ensemble=options.ensemble or [],
            device=options.device,
            precision=options.precision,
        )
