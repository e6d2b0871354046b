"""Names and tables in the documentation are those of the code."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.cli.app import build_command
from nmt.config.help import keys
from nmt.experiment import Experiment, load
from scripts import attention_table
from tests.docs.test_language import anchors

ROOT = Path(__file__).parents[2]


def test_attention_table_is_the_registrys() -> None:
    assert attention_table.table() in (ROOT / "docs" / "attention.md").read_text(encoding="utf-8")


def test_a_mechanism_without_a_formula_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(attention_table.FORMULAS, "dot")
    with pytest.raises(ValueError, match="lacks dot"):
        attention_table.table()


def section(page: str, anchor: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    heading = next(line for line in re.findall(r"^#+ .*", text, flags=re.MULTILINE) if anchors(line) == {anchor})
    after, level = text.split(f"{heading}\n", 1)[1], len(heading.split()[0])
    return re.split(rf"^#{{1,{level}}} ", after, flags=re.MULTILINE)[0]


def test_the_table_of_claims_says_what_was_measured() -> None:
    """Every figure stands in a section of measurements that its row links to."""
    rows = [line for line in section("attention.md", "claimed-and-found").splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    for row in rows:
        links = re.findall(r"\]\(([^)#]+)#([^)]+)\)", row)
        measured = set(re.findall(r"\d+\.\d+", " ".join(section(page, anchor) for page, anchor in links)))
        assert links, row
        assert set(re.findall(r"\d+\.\d+", row)) <= measured, row


def test_the_costs_of_hard_attention_are_those_of_its_table() -> None:
    text = section("measurements/attention.md", "hard-attention")
    baseline = float(re.findall(r"has BLEU (\d+\.\d)", text)[0])
    cells = re.findall(r"^\| `(hard|glimpse)` \| (\d+\.\d) .*? \| (\d+\.\d) ", text, flags=re.MULTILINE)
    costs = [f"{baseline - float(value):.1f}" for _, *values in cells for value in values]
    assert len(costs) == 4
    assert re.findall(r"(\d+\.\d)(?: BLEU)? (?:worse|without)", " ".join(text.split())) == costs


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_every_config_that_ships_is_valid(path: Path) -> None:
    load(path)


def test_other_toolkits_options_have_their_like_here() -> None:
    """docs/coming-from.md: each key on our side of the tables is one; test_commands.py sees to commands elsewhere."""
    text = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    ours = [row.strip("| ").split(" | ")[1] for row in text.splitlines() if row.startswith("| `")]
    named = [key for cell in ours for key in re.findall(r"`((?:data|model|training|search)\.[a-z_0-9.]+)", cell)]
    assert len(named) > 90
    assert set(named) <= set(keys(Experiment))
    for cell in ours:
        for name, options in re.findall(r"`nmt ([a-z]+)([^`]*)", cell):
            known = {option for parameter in build_command(name).params for option in parameter.opts}
            assert set(re.findall(r"--[a-z-]+", options)) <= known, cell


def test_mechanisms_of_the_reader_work_as_the_pages_show_them(tmp_path: Path) -> None:
    """A distance is by how much the state itself scores better than a state of zeros, worked out by hand."""
    distances = {("attention", "manhattan"): 10 / math.sqrt(4), ("attention-explained", "diagonal"): 30.0}
    (tmp_path / "scores").mkdir()
    for page, name in distances:
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        (code,) = re.findall(rf"```python\n(# mechanisms/scores/{name}.py.*?)```", text, flags=re.DOTALL)
        (tmp_path / "scores" / f"{name}.py").write_text(code, encoding="utf-8")
    use = """
import torch
from nmt.attention.attention import Attention
from nmt.attention.config import AttentionConfig
from nmt.cli.app import app
from nmt.config.help import keys
from nmt.config.structure import parse_document, validate
for name in ("manhattan", "diagonal"):
    config = validate(AttentionConfig, parse_document(f"score: {name}", "config.yaml"))
    attention = Attention(config, query_size=4, key_size=4, value_size=4)
    if attention.key_weight_AK is not None:
        attention.key_weight_AK.data = torch.eye(4)
    states = torch.tensor([[[1.0, 2, 3, 4], [0, 0, 0, 0]]])
    memory = attention.memory(states, states, torch.zeros(1, 2, dtype=torch.bool))
    print(attention(states[:, :1], torch.zeros(1, 1), memory).weights_NHTS.flatten().tolist())
"""
    environment = {**os.environ, "NMT_MECHANISMS": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", use], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line, distance in zip(done.stdout.splitlines(), distances.values(), strict=True):
        weights = [1 / (1 + math.exp(-distance)), 1 / (1 + math.exp(distance))]
        assert json.loads(line) == pytest.approx(weights, rel=1e-4)
