"""Prints the table of attention mechanisms that docs/attention.md holds, from the registry."""

from __future__ import annotations

from collections.abc import Mapping

from nmt.attention.mechanism import Mechanism
from nmt.attention.registry import SCORES, WEIGHTS, NoScore


def table() -> str:
    """Formats the table in Markdown, one row for each mechanism."""
    rows = ["| key | name | formula | options | source |", "|---|---|---|---|---|"]
    parts: dict[str, Mapping[str, type[Mechanism]]] = {"score": {"none": NoScore, **SCORES}, "weights": WEIGHTS}
    for key, mechanisms in parts.items():
        for kind, each in mechanisms.items():
            formula = each.formula.replace("|", "\\|")
            rows.append(f"| `{key}` | `{kind}` | {formula} | {_options(each)} | {each.source} |")
    return "\n".join(rows)


def _options(mechanism: type[Mechanism]) -> str:
    """Formats the settings of a mechanism with their defaults, as in a configuration."""
    options = {name: field.default for name, field in mechanism.model_fields.items() if name != "kind"}
    shown = [f"{name}: {_yaml(default)}" for name, default in options.items()]
    return f"`{', '.join(shown)}`" if shown else ""


def _yaml(value: object) -> str:
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))


if __name__ == "__main__":
    print(table())
