"""Options of `nmt average`."""

from __future__ import annotations

from tests.cli.conftest import mistakes

MISTAKES = {
    "no/such": "no/such: no such run directory, checkpoint or config",
    "--last 1": "--last: expected at least 2, found 1",
    "--best 2 --best-by ter": "--best-by ter: use one of loss, perplexity, accuracy, bleu, chrf",
    "--last 2 --best 2": "--last and --best contradict each other; give one of them",
    "--best-by loss": "--best-by says what --best N goes by; give that as well",
}
test_mistakes = mistakes("average", MISTAKES)
