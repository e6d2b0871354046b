"""Options of `nmt evaluate` that do not go together, and those that are missing."""

from __future__ import annotations

from tests.cli.conftest import mistakes

MISTAKES = {
    "--source x": "--reference is missing; name the file with the reference translations",
    "--reference x": "there is nothing to score; give --source for a model to translate, or --hypothesis",
}
test_mistakes = mistakes("evaluate", MISTAKES)
