"""The options of commands that translate simultaneously."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from nmt.cli.conflicts import Excludes
from nmt.cli.options import search_option

if TYPE_CHECKING:
    from nmt.cli.evaluate import EvaluateOptions
    from nmt.cli.translate import TranslateOptions
    from nmt.translator.translator import Loader
    from nmt.workflows.evaluate import Scoring
else:
    EvaluateOptions = TranslateOptions = object


@dataclass(frozen=True)
class TranslateWaiting(TranslateOptions):
    """Has `nmt translate` translate by wait-k."""

    wait: Annotated[int | None, search_option(metavar="K", min=1)] = None
    """Simultaneous: word t depends on K + t - 1 source words."""
    after: ClassVar[str] = "n_best"
    conflicts: ClassVar = (
        Excludes("wait",
            "beam n_best prefix sample temperature top_k top_p seed consensus samples constraints glossary dictionary "
            "replace_unknown markup document engine!=nmt/auto ray",
            "--wait: is greedy search for one sentence in each line; leave out {others}"),
    )  # fmt: skip

    def load(self) -> Loader:
        return partial(super().load(), wait=self.wait)


@dataclass(frozen=True)
class TranslateNeighbors(TranslateOptions):
    """Has `nmt translate` follow known translations of similar sentences."""

    neighbors: Annotated[Path | None, search_option(metavar="FILE")] = None
    """Follow known translations of similar sentences: those of a file of pairs (TSV, TMX ...), or `train`: those that
    the model was trained on."""
    after: ClassVar[str] = "n_best"
    conflicts: ClassVar[tuple[Excludes, ...]] = (
        Excludes("neighbors", "ensemble wait engine!=nmt/auto ray shard",
            "--neighbors: cannot be had together with {others}; leave one of them out"),
    )  # fmt: skip

    def load(self) -> Loader:
        return super().load() if self.neighbors is None else partial(super().load(), neighbors=self.neighbors)


@dataclass(frozen=True)
class EvaluateNeighbors(TranslateNeighbors):
    """Has the search of `nmt evaluate` follow them."""

    conflicts: ClassVar = (
        Excludes("neighbors", "wait", "--neighbors: cannot be had together with --wait; leave one of them out"),
        Excludes("hypothesis alignment", "neighbors", "--neighbors: is for a search; leave it out, or {option}"),
    )


@dataclass(frozen=True)
class ServeNeighbors(TranslateNeighbors):
    """Has `nmt serve` follow them."""

    after: ClassVar[str] = "ensemble"
    conflicts: ClassVar = (
        Excludes("neighbors", "ensemble engine!=nmt confidence",
            "--neighbors: cannot be had together with {others}; leave one of them out"),
    )  # fmt: skip


@dataclass(frozen=True)
class EvaluateWaiting(EvaluateOptions):
    """Has `nmt evaluate` score translations by wait-k, too."""

    wait: Annotated[str | None, typer.Option(metavar="K,K,...", rich_help_panel="Scores")] = None
    """Also score the simultaneous translations of nmt translate --wait."""
    after: ClassVar[str] = "length_edges"
    conflicts: ClassVar = (
        Excludes("wait", "alignment glossary", "--wait: cannot be had together with {others}; leave one of them out"),
        Excludes("hypothesis", "wait",
            "--hypothesis needs no model; leave out --set, --device, --precision and search options"),
    )  # fmt: skip

    def scoring(self) -> Scoring:
        if self.wait is None:
            return super().scoring()
        from nmt.evaluation.by_length import parse_edges
        from nmt.extras.decoding.wait_k import wait_scores

        return replace(super().scoring(), wait_scores=partial(wait_scores, waits=parse_edges(self.wait, "--wait")))
