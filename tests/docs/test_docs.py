"""What the documentation says of names and tables is what the code has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nmt.core.structure import Document, parse_document, validate
from nmt.experiment import Experiment

ROOT = Path(__file__).parents[2]


def test_attention_table_is_the_registrys() -> None:
    printed = subprocess.run(
        [sys.executable, ROOT / "scripts" / "attention_table.py"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert printed.strip() in (ROOT / "docs" / "attention.md").read_text(encoding="utf-8")


def test_the_documented_config_has_every_key_with_its_default() -> None:
    """docs/train.md and docs/translate.md against the classes: no key missing, none that is not there, same values."""
    tree: dict[str, object] = {}
    for page in ("train", "translate"):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        for block in re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL):
            parse_document(block, page)
            tree |= yaml.safe_load(block.replace("1e-3", "0.001").replace("1e-9", "0.000000001"))
    corpus = {"source": "a", "target": "b"}
    data = {"train": corpus, "valid": corpus}
    documented = validate(Experiment, Document({**tree, "data": data}, {(): "docs"}))
    default = validate(Experiment, Document({"run": "runs/my-run", "data": data}, {(): "docs"}))
    assert documented == default
    for section in ("model", "training", "search"):
        written = tree[section]
        assert isinstance(written, dict)
        assert list(written) == list(type(getattr(default, section)).model_fields)


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_every_config_that_ships_is_valid(path: Path) -> None:
    from nmt.experiment import load

    load(path)


@pytest.mark.parametrize(
    "page", [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"], ids=lambda path: path.name
)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
