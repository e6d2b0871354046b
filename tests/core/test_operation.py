"""Operations and their implementations; those of nmt.ops in tests/ops."""

from __future__ import annotations

from nmt.core.operation import Operation


def test_a_registered_implementation_replaces_the_body_and_calls_it() -> None:
    def double(x: int) -> int:
        """Doubles."""
        return 2 * x

    operation = Operation(double)
    assert (operation(3), operation.__doc__) == (6, "Doubles.")
    operation.register(lambda x: operation.body(x) + 1)
    assert (operation(x=3), operation.body) == (7, double)
