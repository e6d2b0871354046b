"""One reader tried by Atheris, which looks for inputs that reach new lines: ``python -m tests.fuzz.coverage_guided NAME
[CASES]``. Needs ``pip install atheris``, which is not among what nmt is developed with: not every Python has a wheel.
A case that breaks the law ends it; Atheris writes it to ``build/fuzz/``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

try:
    import atheris
except ImportError:
    sys.exit("error: atheris is not installed; pip install atheris")

with atheris.instrument_imports(include=["nmt"]):
    from tests.fuzz.judging import judge
    from tests.fuzz.readers import READERS


def main(name: str, cases: int) -> None:
    """Does not return."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    corpus = folder / "corpus"
    for each in (folder / "work", corpus, Path("build/fuzz")):
        each.mkdir(parents=True, exist_ok=True)
    opened = next(each for each in READERS if each.name == name).open(folder / "work")
    for number, seed in enumerate(opened.seeds):
        (corpus / str(number)).write_bytes(seed)

    def one(data: bytes) -> None:
        _, fault = judge(opened.read, data)
        if fault is not None:
            raise AssertionError(fault)

    options = [f"-runs={cases}", "-artifact_prefix=build/fuzz/", "-max_len=20000", "-timeout=20", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
