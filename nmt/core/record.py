"""Records of tensors that have the batch as dimension 0."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Self = TypeVar("Self", bound="BatchRecord")

_SHAPE = re.compile("_[A-Z0-9]+$")
_SHARED = "shared"


@dataclass(frozen=True)
class BatchRecord:
    """A frozen dataclass of tensors, all with the batch as dimension 0.

    Fields are tensors, tuples of tensors, other ``BatchRecord``s, or ``None``. So choosing rows (a beam that follows
    its parents, a batch whose finished sentences leave) and repeating them is written here once, and a record that
    gains a field cannot forget to carry it along. What ``shared()`` fields hold is none of the record's tensors and
    goes along as it is.
    """

    def select(self: Self, rows_N: Tensor) -> Self:
        """The record of the given rows, in their order; ``rows_N`` holds row numbers and may repeat them."""
        return self._map(lambda tensor: tensor.index_select(0, rows_N))

    def part(self: Self, rows: slice) -> Self:
        """The record of neighbouring rows, a view."""
        return self._map(lambda tensor: tensor[rows])

    def repeat(self: Self, times: int) -> Self:
        """Each row ``times`` times, copies of a row side by side."""
        return self._map(lambda tensor: tensor.repeat_interleave(times, dim=0))

    def __len__(self) -> int:
        """The number of rows."""
        sizes = {tensor.shape[0] for tensor in self.tensors()}
        assert len(sizes) == 1, f"the tensors of a record have different numbers of rows: {sorted(sizes)}"
        return sizes.pop()

    @classmethod
    def joined(cls: type[Self], parts: Sequence[Self]) -> Self:
        """The rows of all parts, of which there is at least one, part after part; what they share is the same."""
        import torch

        first = list(_shared_by(parts[0]))
        for part in parts:
            assert all(one is other for one, other in zip(first, _shared_by(part), strict=True))
        columns = zip(*(part.tensors() for part in parts), strict=True)
        return parts[0].with_tensors([torch.cat(column) for column in columns])

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor in the record, nested ones included, in the order of the fields."""
        found: list[Tensor] = []

        def collect(tensor: Tensor) -> Tensor:
            found.append(tensor)
            return tensor

        self._map(collect)
        return tuple(found)

    def with_tensors(self: Self, tensors: Iterable[Tensor]) -> Self:
        """The same record with other tensors, given in the order of ``tensors()``."""
        left = iter(tensors)
        return self._map(lambda _: next(left))

    def names(self) -> tuple[str, ...]:
        """What each of ``tensors()`` is, by its fields without the letters of the shape: ``layers.0.keys``."""
        return tuple(".".join(parts) for parts in _names(self))

    def _map(self: Self, function: Callable[[Tensor], Tensor]) -> Self:
        fields = {name: getattr(self, name) for name in _own_names(self)}
        return dataclasses.replace(self, **{name: _apply(function, value) for name, value in fields.items()})


def shared() -> Any:
    """A field of a ``BatchRecord`` that its rows have in common."""
    return dataclasses.field(metadata={_SHARED: True})


def _shared_by(value: Any) -> Iterator[Any]:
    """What the shared fields of a record and of those inside of it hold."""
    if isinstance(value, tuple):
        for each in value:
            yield from _shared_by(each)
    elif isinstance(value, BatchRecord):
        for field in dataclasses.fields(value):
            held = getattr(value, field.name)
            yield from [held] if _SHARED in field.metadata else _shared_by(held)


def _own_names(record: BatchRecord) -> list[str]:
    return [field.name for field in dataclasses.fields(record) if _SHARED not in field.metadata]


def _names(value: Any) -> Iterator[tuple[str, ...]]:
    inner: list[tuple[str, Any]] = []
    if isinstance(value, BatchRecord):
        inner = [(_SHAPE.sub("", name), getattr(value, name)) for name in _own_names(value)]
    elif isinstance(value, tuple):
        inner = [(str(number), each) for number, each in enumerate(value)]
    elif value is not None:
        yield ()
    for name, each in inner:
        yield from ((name, *rest) for rest in _names(each))


def _apply(function: Callable[[Tensor], Tensor], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, BatchRecord):
        return value._map(function)
    if isinstance(value, tuple):
        return tuple(_apply(function, each) for each in value)
    return function(value)
