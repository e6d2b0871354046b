"""A translator in one file: reads pairs of lines, learns subwords, trains, and translates by beam search.

Bahdanau, Cho & Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate", with the readout
of Luong et al. 2015: ``decoder: {kind: rnn, cell: gru, query: previous, input_feeding: false}`` of ``nmt train``.

    h_s = [forward GRU; backward GRU] over E x_1 ... E x_S                 states of the source; E embeds a token
    s_0 = tanh(W_0 [last forward state; first backward state] + b_0)
    c_t = sum over s of weight_s h_s,  weight = softmax(score),  score_s = v . tanh(W s_(t-1) + U h_s)
    s_t = GRU([E y_(t-1); c_t], s_(t-1))                                   y_t: the target token
    r_t = tanh(W_r [s_t; c_t] + b_r),  p(y_t) = softmax(E r_t + b)

Shapes: B sentences, S source and T target positions, E width of an embedding, D of a state, V vocabulary; N rows, which
are hypotheses in a search and sentences in training.
"""

from __future__ import annotations

import argparse
import io
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from sacrebleu import corpus_bleu
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.attention import Attention, AttentionMemory
from nmt.attention.config import AttentionConfig
from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Step
from nmt.nn.dropout import Dropout
from nmt.nn.recurrent import RecurrentStack, StackState
from nmt.ops import top_tokens
from nmt.search.beam import BeamSearch
from nmt.search.logits_processors import LogitsProcessors
from nmt.search.scoring import Ranking

FILES = [Path(__file__).resolve().parent.parent / "data" / "de-en" / f"train.{side}" for side in ("de", "en")]
PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
NO_DROPOUT = Dropout(0.0)
Batch = tuple[Tensor, Tensor]  # source and target tokens


def read(files: Sequence[Path]) -> list[tuple[str, str]]:
    """Pairs of lines of a source and a target file."""
    return list(zip(*(file.read_text(encoding="utf-8").splitlines() for file in files), strict=True))


def learn_subwords(pairs: Iterable[tuple[str, str]], size: int) -> SentencePieceProcessor:
    """One vocabulary of byte-pair encoding for both languages (Sennrich et al. 2016)."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter([line for pair in pairs for line in pair]), model_writer=model, model_type="bpe",
        vocab_size=size, pad_id=PAD, unk_id=UNKNOWN, bos_id=BEGIN, eos_id=END, minloglevel=2,
    )  # fmt: skip
    return SentencePieceProcessor(model_proto=model.getvalue())


def pad(sentences: Iterable[Sequence[int]]) -> Tensor:
    """Token ids of sentences (B, S), each with the end-of-sentence token."""
    rows = [torch.tensor([*sentence, END]) for sentence in sentences]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def batches(pairs: Sequence[tuple[list[int], list[int]]], size: int = 128) -> Iterator[Batch]:
    """Batches without end: pairs of like length together, in another order in each epoch."""
    while True:
        by_length = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]), random.random()))
        epoch = [by_length[first : first + size] for first in range(0, len(pairs), size)]
        for batch in random.sample(epoch, len(epoch)):
            yield pad(source for source, _ in batch), pad(target for _, target in batch)


@dataclass(frozen=True)
class Memory(BatchRecord):
    """Keys and values of the source, and [last forward state; first backward state]."""

    attention: AttentionMemory
    ends_BD: Tensor


class Translator(nn.Module):
    """p(target | source). ``encode``, ``start``, ``step`` and ``first_token`` are what a search calls."""

    def __init__(self, vocabulary: int, width: int = 128, size: int = 256) -> None:
        super().__init__()
        self.pad = PAD
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.forwards = RecurrentStack("gru", input_size=width, size=size // 2, layers=1)
        self.backwards = RecurrentStack("gru", input_size=width, size=size // 2, layers=1)
        self.start_layer = nn.Linear(size, size)
        self.attention = Attention(AttentionConfig(), query_size=size, key_size=size, value_size=size)  # additive
        self.cell = RecurrentStack("gru", input_size=width + size, size=size, layers=1)
        self.readout = nn.Linear(2 * size, width)
        self.output = nn.Linear(width, vocabulary)
        self.output.weight = self.embedding.weight

    def encode(self, source_BS: Tensor) -> Memory:
        """h_1 ... h_S, and U h_s for each."""
        is_pad_BS, row_B1 = source_BS == PAD, torch.arange(len(source_BS))[:, None]
        last_B1 = (~is_pad_BS).sum(dim=1, keepdim=True) - 1
        # each sentence from its end to its start, and its padding behind it
        mirrored_BS = (last_B1 - torch.arange(source_BS.shape[1])) % source_BS.shape[1]
        embedded_BSE = self.embedding(source_BS)
        forward_BSD = self.forwards(embedded_BSE, None, NO_DROPOUT)
        backward_BSD = self.backwards(embedded_BSE[row_B1, mirrored_BS], None, NO_DROPOUT)[row_B1, mirrored_BS]
        states_BSD = torch.cat([forward_BSD, backward_BSD], dim=2)
        ends_BD = torch.cat([forward_BSD[row_B1, last_B1][:, 0], backward_BSD[:, 0]], dim=1)
        return Memory(self.attention.memory(states_BSD, states_BSD, is_pad_BS), ends_BD)

    def start(self, memory: Memory) -> StackState:
        """s_0."""
        return self.cell.start([self.start_layer(memory.ends_BD).tanh()])

    def decoder_step(self, embedded_NE: Tensor, memory: Memory, state: StackState) -> tuple[Tensor, StackState]:
        """r_t and s_t, from E y_(t-1) and s_(t-1)."""
        no_position_N1 = torch.zeros(len(embedded_NE), 1, dtype=torch.int64)  # additive attention reads none
        context_ND = self.attention(state.top_BD[:, None], no_position_N1, memory.attention).context_NTV[:, 0]
        state = self.cell.step(torch.cat([embedded_NE, context_ND], dim=1), state)
        return self.readout(torch.cat([state.top_BD, context_ND], dim=1)).tanh(), state

    def loss(self, source_BS: Tensor, target_BT: Tensor, smoothing: float = 0.1) -> Tensor:
        """Mean over all target tokens of -log p, with label smoothing (Szegedy et al. 2016, section 7)."""
        memory = self.encode(source_BS)
        state, readouts = self.start(memory), list[Tensor]()
        # teacher forcing: each step reads the token before the one that it predicts
        previous_BT = F.pad(target_BT[:, :-1], (1, 0), value=BEGIN)
        for embedded_BE in self.embedding(previous_BT).unbind(dim=1):
            readout_BE, state = self.decoder_step(embedded_BE, memory, state)
            readouts.append(readout_BE)
        is_token_BT = target_BT != PAD
        logits_NV = self.output(torch.stack(readouts, dim=1)[is_token_BT])
        return F.cross_entropy(logits_NV, target_BT[is_token_BT], label_smoothing=smoothing)

    def step(self, token_N: Tensor, memory: Memory, state: StackState) -> Step[StackState]:
        """The logits after a token, as a search asks for them."""
        readout_NE, state = self.decoder_step(self.embedding(token_N), memory, state)
        logits_NV = self.output(readout_NE)
        best, no_weights = partial(top_tokens, logits_NV), partial(torch.empty, 0)
        return Step(logits_NV.shape[1], lambda rows: logits_NV[rows], best, no_weights, state)

    def first_token(self, rows: int, device: torch.device) -> Tensor:
        """Begin-of-sentence, the input of the first step, (N,)."""
        return torch.full((rows,), BEGIN, device=device)


def train(model: Translator, batches: Iterable[Batch], updates: int, rate: float = 4e-3) -> Iterator[float]:
    """Adam, whose learning rate falls from ``rate`` to 0; yields the loss of each update."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for update, (source_BS, target_BT) in enumerate(islice(batches, updates), start=1):
        loss = model.loss(source_BS, target_BT)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = rate * (1.0 - update / updates)
        optimizer.step()
        yield loss.item()


def translate(model: Translator, subwords: SentencePieceProcessor, lines: Sequence[str], beam: int = 5) -> list[str]:
    """The most probable translation of each line that a beam search finds."""
    source_BS = pad(subwords.encode(list(lines)))
    limits = LogitsProcessors(2 * (source_BS != PAD).sum(dim=1) + 10, eos=END)
    hypotheses = BeamSearch(END, Ranking(), beam)(model.eval(), source_BS, limits)
    return [subwords.decode(list(best.tokens)) for best, *_ in hypotheses]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs=2, type=Path, metavar=("SOURCE", "TARGET"), default=FILES)
    parser.add_argument("--subwords", type=int, default=3000, help="size of the vocabulary; default: 3000")
    parser.add_argument("--updates", type=int, default=1000, help="of training; default: 1000")
    args = parser.parse_args()
    random.seed(1)
    torch.manual_seed(1)
    pairs = read(args.files)
    test = [pairs.pop(random.randrange(len(pairs))) for _ in range(200)]
    subwords = learn_subwords(pairs, args.subwords)
    model = Translator(subwords.vocab_size())
    encoded = [(subwords.encode(source), subwords.encode(target)) for source, target in pairs]
    for update, loss in enumerate(train(model, batches(encoded), args.updates), start=1):
        if update % 50 == 0:
            print(f"update {update:5}   loss {loss:.3f}", flush=True)
    sources, references = zip(*test, strict=True)
    translations = translate(model, subwords, sources)
    print(f"BLEU of {len(sources)} lines: {corpus_bleu(translations, [references]).score:.1f}")
    for lines in list(zip(sources, translations, references, strict=True))[:5]:
        print("\nsource       {}\ntranslation  {}\nreference    {}".format(*lines))


if __name__ == "__main__":
    main()
