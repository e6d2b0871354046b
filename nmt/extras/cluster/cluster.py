"""Calls of a function for each of many inputs on the machines of a Ray cluster. Only this module imports Ray.

Ray decides where and when a call runs. A call whose process or machine dies is repeated elsewhere, up to ``RETRIES``
times; a call that raises is not, because it would raise again.
"""

from __future__ import annotations

import io
import logging
import os
import platform
import secrets
import socket
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, TypeVar

import nmt
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.installation import missing
from nmt.training.interruption import terminated_as_interrupted
from nmt.workflows.build_corpus import in_order

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")

RETRIES = 3
"""Maximum number of repetitions of a call that was lost with its process or machine."""

PATIENCE_S = 10.0
"""Seconds that a cluster has to answer."""


class NodeFault(InputError):
    """A fault of a machine of the cluster, and not of its input."""


def on_this_node(message: str) -> NodeFault:
    """Creates a fault of the machine that this process runs on."""
    return NodeFault(f"node {socket.gethostname()}: {message}")


def check_installed() -> None:
    """Raises InputError if Ray is not installed."""
    if not all(find_spec(name) for name in ("ray", "grpc")):
        raise missing("--ray: Ray is", "ray")


class Cluster:
    """A cluster that this process is connected to.

    It calls tasks and no actors, nor Ray Data: the one output of a task is complete or does not exist, so Ray can
    repeat a task whose process died.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    @property
    def cores(self) -> int:
        """Number of cores of all machines that are present."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    @property
    def gpus(self) -> int:
        """Number of GPUs of all machines that are present."""
        return int(self._ray.cluster_resources().get("GPU", 0))

    def call(self, function: Callable[[T], R], argument: T, *, gpus: int = 0) -> R:
        """Calls a function of a module on some machine, with one core. Raises the function's own InputError, and
        InputError if its process dies again and again."""
        result: R = self._result(self._submit(self._remote(function, gpus), argument))
        return result

    def unordered(
        self, function: Callable[[T], R], arguments: Sequence[T], *, gpus: int = 0
    ) -> Generator[tuple[T, R | InputError], None, None]:
        """Calls a function once for each argument. Yields each argument with its result, or with the error that
        ``call`` would raise, as soon as it is available. Closing the generator cancels the rest."""
        remote = self._remote(function, gpus)
        waiting = {self._submit(remote, argument): argument for argument in arguments}
        try:
            while waiting:
                (done, *_), _ = self._ray.wait(list(waiting), num_returns=1)
                argument = waiting.pop(done)
                try:
                    result: R | InputError = self._result(done)
                except InputError as error:
                    result = error
                yield argument, result
        finally:
            for reference in waiting:
                self._ray.cancel(reference)

    def ordered(self, function: Callable[[S, T], R], shared: S, arguments: Iterable[T], *, ahead: int) -> Iterator[R]:
        """Yields the results of calls with ``shared`` and each argument, in order; at most ``ahead`` calls are started
        before the first result is taken. Raises the same errors as ``call``."""
        remote, everywhere = self._remote(function, 0), self._ray.put(shared)
        return map(self._result, in_order(partial(self._submit, remote, everywhere), arguments, ahead))

    def _remote(self, function: Callable[..., Any], gpus: int) -> Any:
        # max_calls 0: a process is used again, with the model that it has loaded, even if it has a GPU; this may then
        # be another GPU of the machine, so all of them stay visible
        in_sight = {"env_vars": {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}} if gpus else None
        options = {"num_cpus": 1, "num_gpus": gpus, "max_retries": RETRIES, "max_calls": 0, "runtime_env": in_sight}
        return self._ray.remote(**options)(function)

    def _submit(self, remote: Any, *arguments: Any) -> Any:
        try:
            return remote.remote(*arguments)
        except ImportError as error:  # from Ray's own server, behind a ray:// address
            raise _cannot_import(error) from None

    def _result(self, reference: Any) -> Any:
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, InputError):
                raise error.cause from None
            if "ModuleNotFoundError" in str(error):  # from objects that Ray has to unpack before the call
                raise _cannot_import(error) from None
            raise
        except (exceptions.WorkerCrashedError, exceptions.NodeDiedError, exceptions.OutOfMemoryError) as error:
            raise InputError(
                f"--ray: the process that worked on it was ended {RETRIES + 1} times, perhaps for lack of memory "
                f"({type(error).__name__})"
            ) from None
        except exceptions.RayError as error:
            raise InputError(f"--ray: {type(error).__name__}: {_last(error)}") from None


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connects to a cluster by its address: ``HOST:PORT``, ``ray://HOST:PORT``, or ``auto``, which is the cluster that
    RAY_ADDRESS names or that `ray start` has started here, or otherwise a new one with this machine's cores, which ends
    with the context. An existing connection of the program is used unchanged. Raises InputError for an address without
    an answer."""
    check_installed()
    _prepare_import()
    import ray

    logging.getLogger("ray").setLevel(logging.CRITICAL)
    if ray.is_initialized():
        yield Cluster(ray)
        return
    found = _running() if address == "auto" else address
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(_Chatter()))
        if found is None:
            # a token and a folder of its own, because nobody else should use this cluster
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
            # names of sockets in it must not be longer than a hundred bytes
            above = gettempdir() if len(gettempdir()) < 20 else "/tmp"
            folder = stack.enter_context(TemporaryDirectory(prefix="nmt-ray-", dir=above, ignore_cleanup_errors=True))
            stack.callback(_end, ray)
            _begin(ray, address="local", include_dashboard=False, _temp_dir=folder)
        else:
            _check_answers(found)
            stack.callback(_end, ray)
            _begin(ray, address=found)
        stack.enter_context(terminated_as_interrupted())  # instead of Ray's own message with a traceback
        cluster = Cluster(ray)
        if found is None:
            log.info(f"--ray auto: no cluster is running; started one on this machine, cores: {cluster.cores}")
        else:
            log.info(f"Ray cluster: {found}, cores: {cluster.cores}, GPUs: {cluster.gpus}")
        yield cluster


def _prepare_import() -> None:
    """Sets the variables that Ray reads when it is imported, except those that the program has set."""
    if "ray" in sys.modules:
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # no usage data is sent
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    has_token = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    if has_token or (Path.home() / ".ray" / "auth_token").exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # otherwise it connects without a token


class _Chatter(io.TextIOBase):
    """A stream that turns Ray's messages about processes that die, which no setting of Ray stops, into details for
    --verbose."""

    def write(self, text: str) -> int:
        if text.strip():
            log.detail(f"Ray: {text.strip()}")
        return len(text)


def _begin(ray: Any, *, address: str, **options: Any) -> None:
    try:
        with _mute(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address, log_to_driver=False, configure_logging=False, logging_level=logging.CRITICAL, **options)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, ray.exceptions.RayError) as error:
        if address == "local":
            raise InputError(f"--ray auto: no cluster can be started here: {_last(error)}") from None
        raise InputError(
            f"--ray {address}: cannot be used: {_last(error)}; see that it has the same versions of Python "
            f"({platform.python_version()}) and Ray ({ray.__version__}), and that RAY_AUTH_TOKEN is its token if it "
            "asks for one"
        ) from None


def _end(ray: Any) -> None:
    with _mute():
        ray.shutdown()


@contextmanager
def _mute() -> Iterator[None]:
    """Suppresses stderr in the body of the context, including output of libraries, whose faults are reported in an
    error line."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _running() -> str | None:
    """Finds the address of a cluster that RAY_ADDRESS names or that `ray start` has started here."""
    if named := os.environ.get("RAY_ADDRESS"):
        return None if named in ("auto", "local") else named
    noted = Path(os.environ.get("RAY_TMPDIR") or "/tmp") / "ray" / "ray_current_cluster"
    try:
        address = noted.read_text(encoding="utf-8").strip()
        _check_answers(address)
    except (OSError, InputError):  # no cluster, or one that has ended
        return None
    return address


def _check_answers(address: str) -> None:
    """Raises InputError for an address at which no cluster answers; Ray itself would take minutes to notice."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) < 1 << 16):
        raise InputError(f"--ray {address}: is none of auto, HOST:PORT, ray://HOST:PORT")
    advice = "see that it runs there (ray start --head) and that the port is right (6379; for ray:// 10001)"
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_S).close()
    except OSError as error:
        raise InputError(f"--ray {address}: cannot be reached: {error.strerror or error}; {advice}") from None
    if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
        return
    import grpc

    with grpc.insecure_channel(f"{host}:{port}") as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=PATIENCE_S)
        except grpc.FutureTimeoutError:
            raise InputError(f"--ray {address}: something answers there that is not a Ray cluster; {advice}") from None


def _cannot_import(error: Exception) -> NodeFault:
    return NodeFault(f"--ray: a node cannot import nmt ({_last(error)}); install nmt {nmt.__version__} on all nodes")


def _last(error: BaseException) -> str:
    """Returns the last line of an error of Ray, which names the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
