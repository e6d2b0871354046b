"""Prints the table of attention mechanisms that docs/attention.md holds, from the registry."""

from __future__ import annotations

from collections.abc import Mapping

from nmt.attention.mechanism import Mechanism
from nmt.attention.registry import SCORES, WEIGHTS, NoScore

FORMULAS = {
    "none": "one fixed vector, see `model.decoder.context`",
    "additive": r"$v \cdot \tanh(W q + U k)$",
    "concat": r"$v \cdot \tanh(W [q; k])$",
    "cosine": r"$b \cos(q, k)$, $b$ learnt",
    "coverage": r"$v \cdot \tanh(W q + U k + V c)$, $c$: what $s$ has got so far",
    "dot": r"$q \cdot k$",
    "gaussian": r"$-\lVert q - k \rVert^2 / (2 \sigma^2)$",
    "general": r"$q \cdot W k$",
    "location": r"$(W q)_s$",
    "location_sensitive": r"$v \cdot \tanh(W q + U k + V (F * w'))_s$",
    "scaled_dot": r"$q \cdot k / \sqrt{d}$",
    "argmax": r"one-hot, $s = \mathrm{argmax}(e)$",
    "entmax": r"$\max((\alpha - 1) e - \tau, 0)^{1 / (\alpha - 1)}$",
    "glimpse": r"head $k$: mean over $\lvert s - p \rvert \lt 2^k$, $p \sim \mathrm{softmax}(e)$",
    "gumbel": r"one-hot, $s = \mathrm{argmax}(e + g)$",
    "hard": r"one-hot, $s \sim \mathrm{softmax}(e)$",
    "local_m": r"$\mathrm{softmax}(e)$ in $\lvert s - t \rvert \le D$",
    "local_p": r"$\mathrm{softmax}(e) \cdot \exp(-(s - p)^2 / (2 (D/2)^2))$, $p = S \sigma(v \cdot \tanh(W q))$",
    "mocha": r"$\mathrm{softmax}(e)$ in $m$ subwords up to $s$ of `monotonic`",
    "monotonic": r"one-hot, the first $s \ge s'$ with $\sigma(g e_s + r) \gt 1/2$",
    "shift": r"$(a * (g \cdot \mathrm{softmax}(e) + (1 - g) w'))^c$, divided by its sum",
    "softmax": r"$\mathrm{softmax}(e / T)$, $T$: `temperature`",
    "sparsemax": r"$\mathrm{argmin}_{p \in \Delta} \lVert p - e \rVert^2$",
}
r"""The formula of each mechanism in Markdown; the registry has it as plain text, for the terminal. GitHub refuses
`\operatorname`, and takes a bar for the end of a cell."""


def table() -> str:
    """Markdown, one row for each mechanism; a ValueError names a mechanism without a formula here."""
    rows = ["| key | name | formula | options | source |", "|---|---|---|---|---|"]
    parts: dict[str, Mapping[str, type[Mechanism]]] = {"score": {"none": NoScore, **SCORES}, "weights": WEIGHTS}
    for key, mechanisms in parts.items():
        for kind, each in mechanisms.items():
            if kind not in FORMULAS:
                raise ValueError(f"FORMULAS in scripts/attention_table.py lacks {kind}: {each.formula}")
            rows.append(f"| `{key}` | `{kind}` | {FORMULAS[kind]} | {_options(each)} | {each.source} |")
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
