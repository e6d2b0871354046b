"""Requests that no client of ours sends."""

from __future__ import annotations

import pytest

from nmt.extras.service.batcher import Batcher
from tests.extras.service.fakes import Client, Gated, asking


@pytest.mark.parametrize(
    ("length", "status"),
    [("abc", 400), ("-5", 400), ("1e3", 400), ("9" * 5000, 413), ("9" * 18, 413)],
    ids=["text", "negative", "exponent", "digits", "large"],
)
def test_a_length_that_is_none(length: str, status: int) -> None:
    async def talk(client: Client, batcher: Batcher) -> int:
        return (await client.send(b"{}", **{"content-length": length})).status_code

    assert asking(Gated(), talk) == status


def test_a_path_with_a_slash_too_many_is_not_there() -> None:
    """It is not sent on to an address that the request's Host header makes up."""

    async def talk(client: Client, batcher: Batcher) -> int:
        return (await client.get("/health/")).status_code

    assert asking(Gated(), talk) == 404
