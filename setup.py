"""What a wheel has besides Python: the example corpus, and optional kernels (nmt/extras/speed/native/kernels.cpp), a
library for each kind of CPU.

nmt/extras/speed/compiled.py loads the one for the CPU. Where one cannot be compiled, for lack of a compiler or
because it does not know the CPU, the installation goes on without it.
"""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

OPTIONS = ["-O3", "-std=c++17", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"]
# tanh and exp take two thirds of the time with the wide vectors, which compilers do not use by default
CPUS = {
    "x86_64": {
        "x86_64_v4_bf16": ["-march=x86-64-v4", "-mavx512vnni", "-mavx512bf16", "-mprefer-vector-width=512"],
        "x86_64_v4_vnni": ["-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"],
        "x86_64_v3": ["-march=x86-64-v3"],
    }
}


class BuildWithCorpus(build_py):
    """Puts the corpus of `nmt init --example` into the package; an editable installation finds it in the clone."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            to = Path(self.build_lib, "nmt", "extras", "corpus", "de-en")
            to.mkdir(parents=True, exist_ok=True)
            for path in Path("data", "de-en").glob("*.*"):
                shutil.copyfile(path, to / path.name)


machine = platform.machine().lower()
setup(
    cmdclass={"build_py": BuildWithCorpus},
    ext_modules=[
        Extension(
            f"nmt.extras.speed.native.kernels_{name}",
            ["nmt/extras/speed/native/kernels.cpp"],
            extra_compile_args=[*OPTIONS, *options],
            language="c++",
            optional=True,
            py_limited_api=True,  # for it uses nothing of Python
        )
        for name, options in (CPUS.get(machine, {machine: []}) if sys.platform != "win32" else {}).items()
    ],
)
