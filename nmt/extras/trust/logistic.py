"""Logistic regression with ridge regularisation, by Newton's method (Hastie, Tibshirani and Friedman 2009, "The
Elements of Statistical Learning", section 4.4.1):

    p(right | x) = sigmoid(w . (x - mean) / deviation + b)

Shapes: N examples, F features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LIMIT = 10.0
"""Number of deviations from the mean at which a feature is clipped."""
RIDGE = 3.0
"""Weight of the squared weights in the loss."""
ITERATIONS = 50


def sigmoid(x: Floats) -> Floats:
    """Computes 1 / (1 + exp(-x)) of log-odds, which are clipped at 30."""
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))


@dataclass(frozen=True)
class Logistic:
    """A learnt regression."""

    mean_F: Floats
    deviation_F: Floats
    weight_F: Floats
    bias: float

    def log_odds(self, x_NF: Floats) -> Floats:
        """Computes the log-odds of each example, (N,)."""
        return standardised(x_NF, self.mean_F, self.deviation_F) @ self.weight_F + self.bias

    def tree(self) -> dict[str, Any]:
        """Returns the values for JSON."""
        return {name: np.round(value, 6).tolist() for name, value in asdict(self).items()}


def from_tree(tree: Mapping[str, Any], features: int) -> Logistic:
    """Reads what ``Logistic.tree`` has written. Raises KeyError, TypeError or ValueError for anything else."""
    arrays = [np.array(tree[name], dtype=np.float64) for name in ("mean_F", "deviation_F", "weight_F")]
    model = Logistic(arrays[0], arrays[1], arrays[2], float(tree["bias"]))
    values = np.concatenate([*arrays, [model.bias]])
    if len(values) != 3 * features + 1 or not np.isfinite(values).all() or not (model.deviation_F > 0).all():
        raise ValueError("values")
    return model


def standardised(x_NF: Floats, mean_F: Floats, deviation_F: Floats) -> Floats:
    """Scales features to mean 0 and deviation 1, and clips them at ``LIMIT``."""
    return np.clip((x_NF - mean_F) / deviation_F, -LIMIT, LIMIT)


def learn(x_NF: Floats, is_right_N: NDArray[Any], *, ridge: float = RIDGE) -> Logistic:
    """Learns from examples with labels of 0 and 1."""
    mean_F, deviation_F = x_NF.mean(axis=0), x_NF.std(axis=0) + 1e-6
    z_NF1 = np.append(standardised(x_NF, mean_F, deviation_F), np.ones((len(x_NF), 1)), axis=1)
    weight_F1 = np.zeros(z_NF1.shape[1])
    ridge_F1 = np.append(np.full(len(mean_F), ridge), 1e-3)  # the bias is almost free
    for _ in range(ITERATIONS):
        p_N = sigmoid(z_NF1 @ weight_F1)
        gradient_F1 = z_NF1.T @ (is_right_N - p_N) - ridge_F1 * weight_F1
        hessian = (z_NF1.T * (p_N * (1 - p_N))) @ z_NF1 + np.diag(ridge_F1)
        step_F1 = np.linalg.solve(hessian, gradient_F1)
        weight_F1 += step_F1
        if np.abs(step_F1).max() < 1e-6:
            break
    return Logistic(mean_F, deviation_F, weight_F1[:-1], float(weight_F1[-1]))
