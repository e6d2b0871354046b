"""The pictures of the README can be made again, in the sizes that it shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from scripts.make_golden_run import copy
from tests.docs.pages import ROOT
from tests.extras.service.browser import CHROMEDRIVER, CHROMIUM

PICTURES = ("report.png", "alignment-page.png", "server.png")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None or CHROMEDRIVER is None, reason="no Chromium here")
def test_screenshots_are_made_anew(tmp_path: Path) -> None:
    copy(ROOT / "tests" / "golden" / "format-1" / "recurrent", tmp_path / "golden")
    command = [sys.executable, ROOT / "scripts" / "make_screenshots.py", "--run", "run", "--output", tmp_path]
    subprocess.run(command, cwd=tmp_path / "golden", check=True)
    for name in PICTURES:
        with Image.open(tmp_path / name) as made, Image.open(ROOT / "docs" / "pictures" / name) as shown:
            assert made.size == shown.size
            assert len(made.convert("RGB").getcolors() or ()) > 16
