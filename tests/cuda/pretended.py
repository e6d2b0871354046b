"""A CUDA device that computes on the CPU: what can be known of CUDA without one.

Tensors say that they are on ``cuda:0`` and hold their values on the CPU, where every operation runs. As on a GPU, an
operation refuses operands of two devices, and neither ``numpy()`` nor a kernel in C++ reads their memory. Whatever
makes the host wait for the device is noted, with the line of nmt that waits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nmt.extras.speed.cuda_graphs import Graphs
from nmt.nn.dropout import random_bytes
from nmt.nn.recurrent import RecurrentStack

CUDA = torch.device("cuda:0")
_NMT = str(Path(__file__).parents[2] / "nmt")

_WAITING = {
    *("_local_scalar_dense", "equal", "is_nonzero", "item", "nonzero", "masked_select", "multinomial"),
    *("_unique2", "unique_dim", "unique_consecutive", "bincount"),
}
"""Operations that need a value, or the size of their result, on the host."""

_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}

_TAKING_LENGTHS = {"_pack_padded_sequence", "_pad_packed_sequence"}
"""Operations that want lengths on the host."""


class CudaTensor(Tensor):
    """Values on the CPU under the name of a CUDA device."""

    values: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def of(values: Tensor) -> CudaTensor:
        made: CudaTensor = Tensor._make_wrapper_subclass(
            CudaTensor,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device="meta",  # in C++: autograd aborts on a device that PyTorch was built without
        )
        made.values = values
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return CUDA

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    @classmethod
    def __torch_dispatch__(
        cls, operation: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return _run(operation, args, dict(kwargs or {}))

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def new_tensor(self, data: Any, **_: Any) -> Tensor:
        return torch.tensor(data, dtype=self.dtype, device=CUDA)

    def __getitem__(self, index: Any) -> Tensor:
        # in C++ a list would become a tensor without values
        parts = index if isinstance(index, tuple) else (index,)
        return super().__getitem__(tuple(torch.tensor(x, device=CUDA) if isinstance(x, list) else x for x in parts))

    def numpy(self, **_: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def data_ptr(self) -> int:
        raise AssertionError(f"a kernel of the CPU reads the memory of cuda:0: {line_of_nmt()}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied = self.detach().clone()
            memo[id(self)] = nn.Parameter(copied, self.requires_grad) if isinstance(self, nn.Parameter) else copied
        return memo[id(self)]

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"CudaTensor({self.values})"


class Pretended(TorchDispatchMode):
    """The device while a test runs; counts what the host waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []
        """The operation and the line of each time that the host waited for a result."""
        self.uploads: list[str] = []
        """The line of each copy to the device out of memory that is not pinned."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and to keep the compiler away takes a quarter of the time

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if torch.is_inference_mode_enabled():  # elsewhere autograd has taken composite operations apart
            with self:
                if (parts := operation.decompose(*args, **kwargs)) is not NotImplemented:
                    return parts
        name = operation.overloadpacket.__name__
        if name in ("_to_copy", "copy_"):
            to, source = _ends(name, args, kwargs)
            if to.type != source.device.type:
                if to.type == "cpu":
                    self.waits.append(f"copy to the host: {line_of_nmt()}")
                elif not kwargs.get("non_blocking", args[2:3] == (True,)):
                    self.uploads.append(line_of_nmt())
        elif _waits(name, args, kwargs):
            self.waits.append(f"{name}: {line_of_nmt()}")
        elif name in _INDEXING and isinstance(args[0], CudaTensor):
            self.uploads += [line_of_nmt() for each in args[1] if each is not None and not isinstance(each, CudaTensor)]
        return _run(operation, args, kwargs)


def _ends(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[torch.device, Tensor]:
    """The device that a copy leads to, and its source."""
    if name == "copy_":
        return args[0].device, args[1]
    return _device(kwargs.get("device") or args[0].device), args[0]


def _device(named: Any) -> torch.device:
    return CUDA if torch.device(named).type == "meta" else torch.device(named)


def _waits(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    if name in _INDEXING:
        is_filled = name != "index" and len(args) > 2 and args[2].numel() == 1
        waits = not is_filled and any(each is not None and each.dtype in (torch.bool, torch.uint8) for each in args[1])
    elif name == "repeat_interleave":
        waits = any(isinstance(each, Tensor) for each in args[-1:]) and kwargs.get("output_size") is None
    else:
        waits = name in _WAITING
    return waits and any(isinstance(each, CudaTensor) for each in tree_leaves((args, kwargs)))


def _mapped(function: Callable[[Tensor], Tensor], tree: Any) -> Any:
    """Applies a function to the tensors among arguments or results; much faster than ``tree_map``."""
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, tuple | list):
        return type(tree)([_mapped(function, each) for each in tree])
    return tree


def _run(operation: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Runs an operation on the CPU; its results are on the device that they would be on."""
    operands: list[Tensor] = []

    def values(operand: Tensor) -> Tensor:
        operands.append(operand)
        return operand.values if isinstance(operand, CudaTensor) else operand  # type: ignore[return-value]

    on_cpu = _mapped(values, args)
    options = {key: _mapped(values, option) for key, option in kwargs.items() if key != "pin_memory"}
    assert not any(type(each) is Tensor and each.is_meta for each in operands), f"{operation}: a value is lost"
    own = {id(each.values): each for each in operands if isinstance(each, CudaTensor)}
    name = operation.overloadpacket.__name__
    if own and name not in ("_to_copy", "copy_"):
        # PyTorch copies indices to the device by itself, but not from it, and takes single numbers as they are
        others = [each for each in operands if not isinstance(each, CudaTensor) and each.dim() > 0]
        takes_others = name in _TAKING_LENGTHS or (name in _INDEXING and isinstance(args[0], CudaTensor))
        assert not others or takes_others, f"{operation} mixes cuda:0 with the CPU: {line_of_nmt()}"
    on_cuda = bool(own)
    if (device := kwargs.get("device")) is not None:
        on_cuda, options["device"] = _device(device).type == "cuda", torch.device("cpu")
    result = operation(*on_cpu, **options)
    if torch.Tag.inplace_view in operation.tags:
        with no_dispatch():
            operation(*args, **kwargs)  # the shape that it has by its name
    if name == "copy_":
        return args[0]
    if not on_cuda:
        return result
    if name == "_pack_padded_sequence":  # counts for the host
        return CudaTensor.of(result[0]), result[1]
    return _mapped(lambda each: own[id(each)] if id(each) in own else CudaTensor.of(each), result)


def _flatten(rnn: nn.RNNBase) -> None:
    """``RNNBase.flatten_parameters`` as with cuDNN: a layer's weights are parts of one tensor."""
    weights = [weight for weight in rnn._flat_weights if isinstance(weight, CudaTensor)]
    if weights:
        flat = torch.cat([weight.values.flatten() for weight in weights])
        for weight, part in zip(weights, flat.split([weight.numel() for weight in weights]), strict=True):
            weight.values = part.view(weight.shape)


def line_of_nmt() -> str:
    """The innermost line of nmt that runs."""
    frame = sys._getframe()
    while frame.f_back is not None and not frame.f_code.co_filename.startswith(_NMT):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}"


def _made_on_the_host(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``torch.tensor``, whose copy to the device shows."""

    def made(data: Any, *, device: Any = None, **options: Any) -> Tensor:
        on_host = make(data, **options)
        return on_host if device is None else on_host.to(device)

    return made


def dropout_from_bytes(x: Tensor, rate: float) -> Tensor:
    """Dropout by the draws of a CPU; on CUDA it is torch's own."""
    threshold = round(rate * 256)
    return x * (random_bytes(tuple(x.shape), x.device) >= threshold).to(x.dtype) * (256 / (256 - threshold))


DRAWN = SimpleNamespace(dropout=dropout_from_bytes)


@contextmanager
def pretended(memory: int = 80 << 30) -> Iterator[Pretended]:
    """The device, for the body, with bytes of ``memory``."""
    known = {
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda *_: "pretended",
        "get_device_properties": lambda *_: SimpleNamespace(total_memory=memory),
        "is_bf16_supported": lambda *_, **__: True,
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "set_rng_state": lambda *_: None,
        "max_memory_allocated": lambda *_: 0,
        "reset_peak_memory_stats": lambda *_: None,
        "empty_cache": lambda: None,
        "device": lambda *_: nullcontext(),
        "graph_pool_handle": lambda: (0, 0),
        "Stream": lambda _: None,
    }
    with ExitStack() as stack:
        for name, value in known.items():
            stack.enter_context(patch.object(torch.cuda, name, value))
        for name in ("tensor", "as_tensor"):
            stack.enter_context(patch.object(torch, name, _made_on_the_host(getattr(torch, name))))
        foreach = "torch.utils._foreach_utils._get_foreach_kernels_supported_devices"
        stack.enter_context(patch(foreach, lambda: ["cuda", "meta"]))
        stack.enter_context(patch.object(nn.RNNBase, "flatten_parameters", _flatten))
        joined = lambda stack: [_flatten(rnn) for rnn in stack.rnns]  # noqa: E731
        stack.enter_context(patch.object(RecurrentStack, "_join_weights", joined))
        stack.enter_context(patch("nmt.nn.dropout.F", DRAWN))
        stack.enter_context(patch.object(Graphs, "of", lambda *_: None))  # what runs before a graph is recorded
        stack.enter_context(patch.object(Tensor, "pin_memory", lambda tensor: tensor))
        yield stack.enter_context(Pretended())


def on_cuda(model: nn.Module) -> Any:
    """The model with its parameters on the device, shared ones still shared."""
    moved: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None:
                if id(parameter) not in moved:
                    values = CudaTensor.of(parameter.detach().clone())
                    moved[id(parameter)] = nn.Parameter(values, requires_grad=parameter.requires_grad)
                setattr(module, name, moved[id(parameter)])
        for name, buffer in list(module._buffers.items()):
            if buffer is not None:
                module._buffers[name] = CudaTensor.of(buffer)
        if isinstance(module, nn.RNNBase):
            _flatten(module)
    return model
