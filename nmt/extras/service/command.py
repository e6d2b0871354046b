"""`nmt serve`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options import Engine, ModelOptions, check_model, search_option, with_options
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused, limit_caches_for_translation
from nmt.extras.service.listening import api_key, bind, check_installed, connections_at_most, host_names

_network = partial(typer.Option, rich_help_panel="Network")
_batches = partial(typer.Option, rich_help_panel="Batches")
_limits = partial(typer.Option, rich_help_panel="Limits")


@dataclass(frozen=True)
class ServeOptions(ModelOptions):
    """The options of `nmt serve`."""

    host: Annotated[str, _network(metavar="HOST")] = "127.0.0.1"
    """Address to listen at; 0.0.0.0 is every address of this machine."""
    port: Annotated[int, _network(metavar="N", min=0, max=65535)] = 8000
    """Port to listen at; 0 is any free one."""
    batch_sentences: Annotated[int, _batches(metavar="N", min=1)] = 32
    """Maximum sentences per batch."""
    batch_characters: Annotated[int, _batches(metavar="N", min=1)] = 8000
    """Maximum characters per batch."""
    wait: Annotated[float, _batches(metavar="MS", min=0)] = 5.0
    """Milliseconds that a request waits for others to join it."""
    queue: Annotated[int, _batches(metavar="N", min=1)] = 1024
    """Maximum waiting sentences; others get status 429."""
    timeout: Annotated[float, _limits(metavar="S", min=0.001)] = 60.0
    """Seconds for each of reading, answering and sending."""
    grace: Annotated[float, _limits(metavar="S", min=0)] = 30.0
    """Seconds to finish the queue when the server is stopped."""
    idle: Annotated[int, _limits(metavar="S", min=1)] = 15
    """Seconds that a connection may take to send a request."""
    max_connections: Annotated[int, _limits(metavar="N", min=1)] = 1000
    """Maximum connections; ulimit -n may lower it."""
    max_client_connections: Annotated[int | None, _limits(metavar="N", min=1)] = None
    """Maximum connections from one address. Default: half."""
    allowed_hosts: Annotated[list[str] | None, _network(metavar="NAME,...")] = None
    """Further names of this server; *: any."""
    api_key_file: Annotated[Path | None, _network(metavar="FILE")] = None
    """Key that clients need; or set NMT_API_KEY."""
    max_body: Annotated[int, _limits(metavar="BYTES", min=1)] = 1 << 20
    """Maximum bytes of a request."""
    max_sentences: Annotated[int, _limits(metavar="N", min=1)] = 256
    """Maximum texts per request."""
    max_characters: Annotated[int, _limits(metavar="N", min=1)] = 2000
    """Maximum characters, and subwords, per text."""
    ensemble: Annotated[list[str] | None, search_option(metavar="MODEL")] = None
    """Another model that translates together with MODEL; repeatable."""
    engine: Engine = "nmt"


@with_options(ServeOptions, ())
def serve(options: ServeOptions) -> None:
    """Serve translations over HTTP, with a page to try them.

    POST /translate takes {"text": "..."}; requests that arrive at the same time share a batch. The page is at /, the
    API at /docs, and metrics for Prometheus at /metrics. Programs for LibreTranslate, DeepL and OpenAI can ask
    it, too."""
    if options.max_sentences > options.queue:
        raise InputError(f"--max-sentences {options.max_sentences}: exceeds --queue {options.queue}")
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
            from nmt.extras.service import server
            from nmt.extras.service.batcher import Batching
            from nmt.extras.service.engine import load_engine
            from nmt.extras.service.messages import Limits
        load = partial(options.load(), ensemble=options.ensemble or [], engine=options.engine)
        batching = Batching(options.batch_sentences, options.batch_characters, options.wait / 1000, options.queue)
        requests = options.max_body, options.max_sentences, options.max_characters, options.timeout
        limits = Limits(*requests, options.idle, *clients, options.grace)
        server.run(listening, partial(load_engine, load), batching, limits)
