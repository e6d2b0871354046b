"""Names of heads and of the parts of a model."""

from __future__ import annotations

import pytest

from nmt.models.names import count, matching, part_of


@pytest.mark.parametrize(
    ("parameter", "part"),
    [
        ("encoder.embedding.table.weight", "embedding"),
        ("encoder.layers.0.attention.key_weight_QK", "encoder"),
        ("decoder.layers.0.attention.key_weight_QK", "attention"),
        ("decoder.layers.0.self_attention.key_weight_QK", "decoder"),
        ("decoder.attention.score_parameters.v_A", "attention"),
        ("output.bias_V", "output"),
    ],
)
def test_parameters_belong_to_parts(parameter: str, part: str) -> None:
    assert part_of(parameter) == part


def test_parts_are_counted_in_the_order_of_a_sentence() -> None:
    sizes = {
        "output.bias_V": 5,
        "encoder.rnn": 7,
        "decoder.attention.v_A": 3,
        "encoder.embedding.table": 11,
        "more.x": 2,
    }
    assert list(count(sizes | {"output.w": 1, "decoder.rnn": 0}).items()) == [
        ("embedding", 11), ("encoder", 7), ("attention", 3), ("output", 6), ("more", 2)
    ]  # fmt: skip


def test_heads_are_named_by_a_shell_pattern() -> None:
    names = [f"layer{layer}.head{head}" for layer in range(1, 4) for head in range(1, 4)]
    assert matching(names, "layer2.*") == [3, 4, 5]
    assert matching(names, "*.head1") == [0, 3, 6]
    with pytest.raises(
        ValueError, match=r"^layer4\.\*: fits no head of this model; it has layer1.head1 to layer3.head3$"
    ):
        matching(names, "layer4.*")
    with pytest.raises(ValueError, match=r"it has head1, head2$"):
        matching(["head1", "head2"], "Head1")
