"""The command that installs an extra fits the way in which nmt was installed."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from nmt.core import installation
from nmt.core.installation import install_command, missing

ROOT = Path(__file__).parents[2]
PYPI = "https://example.org/nmt_attention-1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({"url": "file:///my%20folder", "dir_info": {}}, "pip install '/my folder[serve]'"),
        ({"url": "file:///a/nmt.whl", "archive_info": {}}, "pip install '/a/nmt.whl[serve]'"),
        (
            {"url": "https://example.org/nmt.git", "vcs_info": {"vcs": "git", "commit_id": "0123"}},
            "pip install 'nmt-attention[serve] @ git+https://example.org/nmt.git'",
        ),
        ({"url": PYPI, "archive_info": {}}, f"pip install 'nmt-attention[serve] @ {PYPI}'"),
        (None, "pip install 'nmt-attention[serve]'"),
    ],
    ids=["folder", "wheel", "git", "wheel from elsewhere", "index"],
)
def test_by_pep_610(origin: object, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr(installation, "__file__", "/elsewhere/site-packages/nmt/core/installation.py")
    monkeypatch.setattr(installation, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))
    assert install_command("serve") == command
    if "@" in command or origin is None:
        assert Requirement(command.split("'")[1]).extras == {"serve"}


def test_from_a_clone() -> None:
    assert str(missing("Ray is", "ray")) == f"Ray is not installed: pip install -e '{ROOT}[ray]'"


def test_extras_that_messages_name_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "nmt").rglob("*.py")]
    named = {extra for text in sources for extra in re.findall(r'missing\(f?"[^"]*", "(\w+)"\)', text)}
    assert named == {"serve", "ctranslate2", "onnx", "ray", "tensorboard", "hf", "zstd"} <= set(extras)
