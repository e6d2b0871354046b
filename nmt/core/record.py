"""Records of tensors that have the batch as dimension 0."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Self = TypeVar("Self", bound="BatchRecord")

_SHAPE = re.compile("_[A-Z0-9]+$")
_SHARED = "shared"


@dataclass(frozen=True)
class BatchRecord:
    """A frozen dataclass of tensors, all with the batch as dimension 0.

    Fields are tensors, tuples of tensors, other ``BatchRecord``s, or ``None``. The selection of rows (beams that
    follow their parents, a batch that drops finished sentences) and their repetition are written once, for all fields.
    The values of ``shared()`` fields belong to all rows and are kept as they are.
    """

    def select(self: Self, rows_N: Tensor) -> Self:
        """Selects the given rows, in their order; ``rows_N`` holds row numbers and may repeat them."""
        return self._map(lambda tensor: tensor.index_select(0, rows_N))

    def part(self: Self, rows: slice) -> Self:
        """Selects a range of rows, as a view."""
        return self._map(lambda tensor: tensor[rows])

    def repeat(self: Self, times: int) -> Self:
        """Repeats each row ``times`` times; the copies of a row are neighbours."""
        return self._map(lambda tensor: tensor.repeat_interleave(times, dim=0))

    def __len__(self) -> int:
        """Returns the number of rows."""
        sizes = {tensor.shape[0] for tensor in self.tensors()}
        assert len(sizes) == 1, f"the tensors of a record have different numbers of rows: {sorted(sizes)}"
        return sizes.pop()

    @classmethod
    def joined(cls: type[Self], parts: Sequence[Self]) -> Self:
        """Concatenates the rows of all parts, of which there is at least one; all parts have the same shared values."""
        import torch

        shared = list(_shared_values(parts[0]))
        for part in parts:
            assert all(one is other for one, other in zip(shared, _shared_values(part), strict=True))
        columns = zip(*(part.tensors() for part in parts), strict=True)
        return parts[0].with_tensors([torch.cat(column) for column in columns])

    def tensors(self) -> tuple[Tensor, ...]:
        """Returns every tensor in the record, including nested ones, in the order of the fields."""
        return tuple(tensor for _, tensor in _leaves(self))

    def with_tensors(self: Self, tensors: Iterable[Tensor]) -> Self:
        """Returns a copy with other tensors, in the order of ``tensors()``."""
        remaining = iter(tensors)
        return self._map(lambda _: next(remaining))

    def names(self) -> tuple[str, ...]:
        """Returns the names of ``tensors()``: their fields without the letters of the shape, as in
        ``layers.0.keys``."""
        return tuple(".".join(_SHAPE.sub("", name) for name in path) for path, _ in _leaves(self))

    def _map(self: Self, function: Callable[[Tensor], Tensor]) -> Self:
        return dataclasses.replace(self, **{name: _apply(function, value) for name, value in _own_fields(self)})


def shared() -> Any:
    """Declares a field of a ``BatchRecord`` whose value belongs to all rows."""
    return dataclasses.field(metadata={_SHARED: True})


def _shared_values(value: Any) -> Iterator[Any]:
    """Returns the values of the shared fields of a record and of the records in it."""
    if isinstance(value, tuple):
        for entry in value:
            yield from _shared_values(entry)
    elif isinstance(value, BatchRecord):
        for field in dataclasses.fields(value):
            content = getattr(value, field.name)
            yield from [content] if _SHARED in field.metadata else _shared_values(content)


@cache
def _own_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if _SHARED not in field.metadata)


def _own_fields(record: BatchRecord) -> list[tuple[str, Any]]:
    return [(name, getattr(record, name)) for name in _own_names(type(record))]  # type: ignore[arg-type]


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Tensor]]:
    """Yields the tensors in a value, each with the path of fields and numbers to it."""
    if isinstance(value, BatchRecord):
        for name, content in _own_fields(value):
            yield from _leaves(content, (*path, name))
    elif isinstance(value, tuple):
        for index, entry in enumerate(value):
            yield from _leaves(entry, (*path, str(index)))
    elif value is not None:
        yield path, value


def _apply(function: Callable[[Tensor], Tensor], value: Any) -> Any:
    if isinstance(value, BatchRecord):
        return value._map(function)
    if isinstance(value, tuple):
        return tuple(_apply(function, entry) for entry in value)
    return None if value is None else function(value)
