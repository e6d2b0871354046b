"""Prints the table of attention mechanisms that docs/attention.md holds, from the registry."""

from __future__ import annotations

from nmt.attention.registry import SCORES, WEIGHTS


def table() -> str:
    """Markdown, one row for each mechanism."""
    rows = ["| key | name | formula | source |", "|---|---|---|---|"]
    for key, mechanisms in (("score", SCORES), ("weights", WEIGHTS)):
        rows += [f"| `{key}` | `{kind}` | {each.formula} | {each.source} |" for kind, each in mechanisms.items()]
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
