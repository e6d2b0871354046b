"""An exercise: the forward pass of an encoder-decoder with attention, by hand; and its solution, checked against nmt.

The exercise. Translate "es regnet heute" into "rain today" with the weights below. All vectors have two numbers, and no
layer has a bias. First read the source x_1 x_2 x_3, one embedding for each word:

    h_0 = (0, 0)
    for s = 1, 2, 3:
        h_s = tanh(W x_s + U h_{s-1})                                        the encoder, a cell of Elman 1990

Then write the target. Each step t knows the word before, y_{t-1}, of which the first is <s>:

    q_0 = h_3
    for t = 1, 2:
        for s = 1, 2, 3:
            e_s = v . tanh(W_a q_{t-1} + U_a h_s)                            scores (Bahdanau et al. 2015, A.1.2)
        a_s = exp(e_s) / (exp(e_1) + exp(e_2) + exp(e_3))                    weights, a softmax
        c = a_1 h_1 + a_2 h_2 + a_3 h_3                                      context
        q_t = tanh(A [y_{t-1}; c] + B q_{t-1})                               decoder; [y; c] has four numbers
        r = tanh(R [q_t; c])                                                 readout (Luong et al. 2015, equation 5)
        p = softmax(O r)                                                     one number for each target word
    loss = -log p(rain) of step 1 - log p(today) of step 2

(a) Compute h_1 and h_2. (b) Compute the weights of step 1. Which word is attended to most? (c) Compute p of step 1.
(d) Why can the steps not be computed all at once? (e) Multiply v by 10. What becomes of the attention weights, and of
their derivatives by the scores? (f) How many parameters does the model have?

    E of the source   es (1, 0)    regnet (0, 1)    heute (1, 1)           W_a = 0 1    U_a =  0  2    v =  2
    E of the target   <s> (1, 1)   rain (1, 0)      today (0, 1)                 2 1          -1  0         -2

    W = -1 1    U = -1 0    A = -1 -1 0 -1    B = -1  0    R =  0 2 0 1    O = -1 -1    (a row for each of <s>, rain,
         0 1         1 0         0 -1 0 -1         0 -1        -1 0 0 1        -2  1    today)
                                                                                1  1

The solution is in plain loops over lists, and prints every number on the way. The other answers: (d) The scores and the
cell need q_{t-1}. (e) The best score gets nearly all the weight, and a_s (1 - a_s), the derivative of a_s by e_s, is
nearly 0. (f) 12 in the embeddings, 8 in the encoder, 10 in the attention, 12 in the decoder, 8 in R and 6 in O: 56. At
the end, nmt's encoder and decoder (``query: previous``, ``input_feeding: false``) compute the same from these weights.
"""

from __future__ import annotations

import argparse
import math
import random
from typing import NamedTuple

import torch
from torch import nn

from nmt.attention.config import AttentionConfig
from nmt.models.rnn.config import RNNDecoderConfig, RNNEncoderConfig
from nmt.models.rnn.decoder import RNNDecoder
from nmt.models.rnn.encoder import RNNEncoder
from nmt.nn.config import DropoutConfig
from nmt.nn.embedding import Embedding
from nmt.nn.output import OutputLayer

Vector = list[float]
Matrix = list[Vector]
SOURCE, TARGET = ["es", "regnet", "heute"], ["<s>", "rain", "today"]

WEIGHTS: dict[str, Matrix] = {
    "E_source": [[1, 0], [0, 1], [1, 1]],
    "E_target": [[1, 1], [1, 0], [0, 1]],
    "W": [[-1, 1], [0, 1]],
    "U": [[-1, 0], [1, 0]],
    "W_a": [[0, 1], [2, 1]],
    "U_a": [[0, 2], [-1, 0]],
    "v": [[2, -2]],
    "A": [[-1, -1, 0, -1], [0, -1, 0, -1]],
    "B": [[-1, 0], [0, -1]],
    "R": [[0, 2, 0, 1], [-1, 0, 0, 1]],
    "O": [[-1, -1], [-2, 1], [1, 1]],
}
"""The weights of the exercise; a row of E is the embedding of a word."""

NAMES = {
    "E_source": "encoder.embedding.table.weight",
    "E_target": "decoder.embedding.table.weight",
    "W": "encoder.forwards.0.rnns.0.weight_ih_l0",
    "U": "encoder.forwards.0.rnns.0.weight_hh_l0",
    "W_a": "decoder.attention.query_weight_AQ",
    "U_a": "decoder.attention.key_weight_AK",
    "v": "decoder.attention.score_parameters.v_A",
    "A": "decoder.stack.rnns.0.weight_ih_l0",
    "B": "decoder.stack.rnns.0.weight_hh_l0",
    "R": "decoder.readout.weight",
    "O": "output.weight_VD",
}
"""Their names in nmt."""


class ForwardPass(NamedTuple):
    """The results: a row for each source word in ``h``, for each step in the others."""

    h: Matrix
    a: Matrix
    r: Matrix
    p: Matrix

    @property
    def numbers(self) -> Vector:
        """All numbers in a row."""
        return [number for rows in self for row in rows for number in row]


def multiply(matrix: Matrix, vector: Vector) -> Vector:
    """The product: row by row, the sum of products."""
    return [sum(weight * number for weight, number in zip(row, vector, strict=True)) for row in matrix]


def add(one: Vector, other: Vector) -> Vector:
    """The sum of two vectors."""
    return [number + more for number, more in zip(one, other, strict=True)]


def tanh(vector: Vector) -> Vector:
    """tanh of each number."""
    return [math.tanh(number) for number in vector]


def softmax(vector: Vector) -> Vector:
    """exp of each number, divided by the sum of all."""
    exponentials = [math.exp(number) for number in vector]
    return [number / sum(exponentials) for number in exponentials]


def show(name: str, numbers: Vector) -> Vector:
    """Prints a result, and returns it."""
    print(f"{name:42}", *(f"{number:8.4f}" for number in numbers))
    return numbers


def solve(w: dict[str, Matrix]) -> ForwardPass:
    """The solution of the exercise."""
    done, h = ForwardPass([], [], [], []), [0.0, 0.0]
    for s, x in enumerate(w["E_source"], start=1):
        inside = show(f"W x_{s} + U h_{s - 1}", add(multiply(w["W"], x), multiply(w["U"], h)))
        h = show(f"h_{s} = tanh of this, after {SOURCE[s - 1]}", tanh(inside))
        done.h.append(h)
    q = h
    for t, y in enumerate(w["E_target"][:2], start=1):
        print(f"\nstep {t}, after {TARGET[t - 1]}")
        e, of_query = list[float](), show(f"W_a q_{t - 1}", multiply(w["W_a"], q))
        for s, h in enumerate(done.h, start=1):
            inside = show(f"W_a q_{t - 1} + U_a h_{s}", add(of_query, multiply(w["U_a"], h)))
            e += show(f"e_{s} = v . tanh of this", multiply(w["v"], tanh(inside)))
        a = show("a = softmax(e)", softmax(e))
        c = [sum(a_s * h[i] for a_s, h in zip(a, done.h, strict=True)) for i in range(2)]
        show("c = a_1 h_1 + a_2 h_2 + a_3 h_3", c)
        inside = show(f"A [y_{t - 1}; c] + B q_{t - 1}", add(multiply(w["A"], y + c), multiply(w["B"], q)))
        q = show(f"q_{t} = tanh of this", tanh(inside))
        r = show(f"r = tanh(R [q_{t}; c])", tanh(multiply(w["R"], q + c)))
        p = show(f"p of {', '.join(TARGET)}", softmax(show("O r", multiply(w["O"], r))))
        done.a.append(a)
        done.r.append(r)
        done.p.append(p)
    show("\nloss", [-math.log(done.p[0][1]) - math.log(done.p[1][2])])
    return done


def by_nmt(w: dict[str, Matrix]) -> ForwardPass:
    """The same by nmt's modules, whose biases are 0 before training."""
    source, target = Embedding(3, 2, pad=0), Embedding(3, 2, pad=0)
    none = DropoutConfig(embedding=0.0, layers=0.0)
    encoder = RNNEncoder(RNNEncoderConfig(cell="elman", size=2, bidirectional=False), source, width=2, dropout=none)
    config = RNNDecoderConfig(cell="elman", size=2, query="previous", input_feeding=False, start="raw")
    decoder = RNNDecoder(config, AttentionConfig(), target, width=2, memory_size=2, readout_size=2, dropout=none)
    model = nn.ModuleDict({"encoder": encoder, "decoder": decoder, "output": OutputLayer(2, 3)})
    for name, path in NAMES.items():
        parameter = model.get_parameter(path)
        parameter.data.copy_(torch.tensor(w[name]).view_as(parameter))
    word_BS = torch.arange(3)[None]
    with torch.no_grad():
        encoded = encoder(encoder.embed(word_BS), torch.zeros(1, 3, dtype=torch.bool))
        decoded = decoder.teacher_forced(word_BS[:, :2], decoder.memory(encoded))
        p_BTV = model["output"](decoded.readout_BTR).softmax(dim=2)
    results = encoded.states_BSD, decoded.weights_BHTS[:, 0], decoded.readout_BTR, p_BTV
    return ForwardPass(*(each[0].tolist() for each in results))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="another exercise, with weights drawn from -2 to 2")
    args = parser.parse_args()
    weights, rng = WEIGHTS, random.Random(args.seed)
    if args.seed is not None:
        weights = {name: [[float(rng.randint(-2, 2)) for _ in row] for row in rows] for name, rows in WEIGHTS.items()}
        for name, rows in weights.items():
            print(name, *(" ".join(f"{number:2.0f}" for number in row) for row in rows), sep="   ")
        print()
    pairs = zip(solve(weights).numbers, by_nmt(weights).numbers, strict=True)
    print(f"nmt's own modules differ by at most {max(abs(number - same) for number, same in pairs):.0e}")


if __name__ == "__main__":
    main()
