"""Wait-k translation (Ma et al. 2019, "STACL").

Word t of a translation is chosen greedily from the words before it and the first g(t) = min(k + t - 1, |x|) of the |x|
words of the source. A prefix has end-of-sentence only if it is the whole source; end-of-sentence of the translation
counts as a word. The previous sentences that a model with context reads are known from the beginning, and do not belong
to the |x| words.

A model that was trained on whole sentences encodes each prefix anew, and its decoder reads the translation so far anew
(test-time wait-k). A model that was trained with ``training.wait`` goes on from its state and reads the next source
word as soon as a word has begun, as in its training: no encoder state depends on later words, and each subword of the
translation has seen its own prefix.

In test-time wait-k, all subwords of a word, and the decision that the next word begins, depend on the same source
words. The first subword of the next word, among those with which words begin, depends on one more source word, and its
probability is the one among them.

Shapes: B sentences, S source positions, N rows, T target positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from nmt.core.errors import InputError
from nmt.core.record import BatchRecord
from nmt.data.context import BREAK
from nmt.data.tokenizer import MARK, Tokenizer, TokenizerPair
from nmt.data.vocabulary import EOS, PAD
from nmt.data.words import is_unspaced
from nmt.evaluation.latency import WaitScore, average_lagging
from nmt.models.seq2seq import Step
from nmt.models.step_model import StepModel
from nmt.nn.output import top_tokens_in_parts
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from nmt.translator.translator import Translator

REFUSED = "n_best groups sampling consensus coverage_penalty replace_unknown markup document"
"""Settings of a search that are not compatible with it."""


@dataclass(frozen=True)
class WordStarts:
    """The tokens with which words begin."""

    begins_source_V: Tensor
    """Mask of the source tokens with which a word begins; False for end-of-sentence and padding."""
    begins_target_V: Tensor
    """Mask of the target tokens with which a word begins; True for end-of-sentence."""
    ends_prefix_V: Tensor
    """Mask of the tokens of target languages and ends of previous sentences, which are read with the first word."""

    @staticmethod
    def of(tokenizers: TokenizerPair, device: torch.device) -> WordStarts:
        """Finds them in the vocabularies."""
        pair = (tokenizers.source, tokenizers.target)
        source_V, target_V = (torch.tensor(list(word_starts(each).values()), device=device) for each in pair)
        ends_prefix_V = torch.zeros_like(source_V)
        ends_prefix_V[[*pair[0].languages.values(), *filter(None, [pair[0].control(BREAK)])]] = True
        source_V[[PAD, EOS]], target_V[EOS] = False, True
        return WordStarts(source_V, target_V, ends_prefix_V)

    def of_source(self, source_BS: Tensor) -> Tensor:
        """Numbers the words of sources from 1, (B, S); end-of-sentence belongs to the last word."""
        place_S = torch.arange(source_BS.shape[1], device=source_BS.device)
        first_B1 = (self.ends_prefix_V[source_BS] * (place_S + 1)).amax(dim=1, keepdim=True)
        begins_BS = self.begins_source_V[source_BS] & (place_S > first_B1) | (place_S == first_B1)
        return begins_BS.cumsum(dim=1).clamp(min=1)

    def begun_before(self, target_BT: Tensor) -> Tensor:
        """Counts the words of targets that have begun before each token, (B, T); the first token always begins one."""
        begins_BT = self.begins_target_V[target_BT]
        begins_BT[:, 0] = True
        return begins_BT.cumsum(dim=1) - begins_BT.long()


@dataclass(frozen=True)
class Source(BatchRecord):
    """Whole source sentences."""

    tokens_BS: Tensor
    word_BS: Tensor
    """Number, from 1, of the word that each token belongs to; end-of-sentence belongs to the last word."""


@dataclass(frozen=True)
class Prefixes(BatchRecord):
    """The state of the decoder, and the source prefixes that it knows."""

    tokens_NT: Tensor
    """Tokens that the decoder has read."""
    read_N: Tensor
    """g(t), before it reaches |x|."""
    memory: BatchRecord
    state: BatchRecord


@dataclass
class WaitKModel:
    """A model whose steps know a prefix of the source, for a greedy search without prefixes of the translation; see
    ``StepModel``. The host waits for a GPU at each step."""

    model: StepModel[Any, Any]
    wait: int
    """k, the number of source words that are read before the first target word."""
    words: WordStarts
    rereads: bool = True
    """Read the translation so far anew with each source word; False for a model of ``training.wait``."""
    pad: int = PAD
    training: bool = False

    def encode(self, source_BS: Tensor) -> Source:
        """See ``StepModel``."""
        return Source(source_BS, self.words.of_source(source_BS))

    def start(self, memory: Source) -> Prefixes:
        """See ``StepModel``."""
        read_B = torch.full_like(memory.tokens_BS[:, 0], self.wait)
        prefix = self._encode(memory, read_B)
        return Prefixes(memory.tokens_BS[:, :0], read_B, prefix, self.model.start(prefix))

    def step(self, token_N: Tensor, memory: Source, state: Prefixes) -> Step[Prefixes]:
        """See ``StepModel``."""
        tokens_NT = torch.cat([state.tokens_NT, token_N[:, None]], dim=1)
        if not self.rereads:
            return self._next_step(tokens_NT, memory, state)
        step = self.model.step(token_N, state.memory, state.state)
        # rows that have source words to read, and begin a word after the first one
        is_next_N = (state.read_N < memory.word_BS[:, -1]) & (tokens_NT.shape[1] > 1)
        if is_next_N.any():
            is_next_N = is_next_N & self.words.begins_target_V[step.top_tokens(1, False).token_NK[:, 0]]
        if not is_next_N.any():
            return replace(step, state=replace(state, tokens_NT=tokens_NT, state=step.state))
        read_N = state.read_N + is_next_N
        prefix = self._encode(memory, read_N)
        inner = self.model.start(prefix)
        for each_N in tokens_NT.unbind(dim=1):
            step = self.model.step(each_N, prefix, inner)
            inner = step.state
        whole, is_ruled_out_NV = step.logits, is_next_N[:, None] & ~self.words.begins_target_V

        def logits(rows: slice) -> Tensor:
            return whole(rows).masked_fill(is_ruled_out_NV[rows], -torch.inf)

        top_tokens = partial(top_tokens_in_parts, logits, token_N, step.vocabulary)
        return Step(step.vocabulary, logits, top_tokens, step.weights, Prefixes(tokens_NT, read_N, prefix, inner))

    def _next_step(self, tokens_NT: Tensor, memory: Source, state: Prefixes) -> Step[Prefixes]:
        """Computes a step that goes on from the last one, after which a word may have begun."""
        number = tokens_NT.shape[1] - 1  # of tokens of the translation
        # the first one always begins a word, and before it there is none
        begun_N = (self.words.begins_target_V[tokens_NT[:, -1]] | (number == 1)) & (number > 0)
        is_next_N = begun_N & (state.read_N < memory.word_BS[:, -1])
        read_N, prefix = state.read_N + is_next_N, state.memory
        if is_next_N.any():
            prefix = self._encode(memory, read_N)
        step = self.model.step(tokens_NT[:, -1], prefix, state.state)
        return replace(step, state=Prefixes(tokens_NT, read_N, prefix, step.state))

    def first_token(self, rows: int, device: torch.device) -> Tensor:
        """See ``StepModel``."""
        return self.model.first_token(rows, device)

    def _encode(self, memory: Source, read_B: Tensor) -> Any:
        return self.model.encode(memory.tokens_BS.masked_fill(memory.word_BS > read_B[:, None], self.pad))


def word_starts(tokenizer: Tokenizer) -> dict[str, bool]:
    """Returns a mask of the pieces, in the order of ids, with which a word begins: those with the mark U+2581, those
    of a script without spaces, and all of a vocabulary of whole words, which lacks the mark itself."""
    pieces = tokenizer.pieces(range(tokenizer.size))
    is_any = MARK not in pieces
    return {piece: is_any or piece.startswith(MARK) or is_unspaced(piece) for piece in pieces}


def waiting(translator: Translator, wait: int) -> Translator:
    """Returns the translator with greedy wait-k search, for which each text is one sentence. Raises InputError for an
    engine or settings that are not compatible with it."""
    search, engine, trained = translator.search, translator.engine, translator.trained
    for key in REFUSED.split():
        if getattr(search, key) != SearchConfig.model_fields[key].default:
            raise InputError(f"search.{key}: cannot be had together with --wait; leave it at its default")
    if translator.terminology is not None:
        raise InputError("--wait: cannot be had together with --glossary; leave one of them out")
    if not isinstance(engine, TorchEngine) or wait < 1:
        raise InputError("--wait: needs a number of at least 1, and --engine nmt")
    # what a source says again is known at its end
    off = {"split_longer_than": None, "repetition_margin": None, "numbers": False}
    greedy = search.model_copy(update={"beam": 1, **off})
    words = WordStarts.of(trained.tokenizers, trained.compute.device)
    model = WaitKModel(engine.model, wait, words, rereads=trained.experiment.training.wait is None)
    return replace(translator, search=greedy, engine=replace(engine, model=model))


def wait_scores(
    translator: Translator, sources: Sequence[str], bleu: Callable[[Sequence[str]], float], *, waits: Sequence[int]
) -> list[WaitScore]:
    """Translates with each k, and scores the texts by ``bleu``. Blank sources do not count in the mean of the average
    lagging; an empty translation counts as one word."""
    goes_on = translator.trained.experiment.training.wait is not None
    source, limit = translator.trained.tokenizers.source, translator.search.max_source_tokens
    begins, begins_target = word_starts(source), word_starts(translator.trained.tokenizers.target)
    encoded = [source.pieces(source.encode(text)[:limit]) for text in sources]
    scores = []
    for wait in waits:
        translations, laggings = waiting(translator, wait).translate(sources), list[float]()
        for pieces, translation in zip(encoded, translations, strict=True):
            if pieces:
                source_words = 1 + sum(begins[piece] for piece in pieces[1:])
                further = enumerate(translation.tokens[1:], 1)  # the first one always begins a word
                starts = [0, *(place for place, piece in further if begins_target[piece])]
                # a word of several subwords is known when the last one is, which may have read one more source word
                longer = [goes_on and end - start > 1 for start, end in pairwise([*starts, len(translation.tokens)])]
                read = [min(wait + t + is_longer, source_words) for t, is_longer in enumerate(longer)]
                laggings.append(average_lagging(read, source_words))
        mean = sum(laggings) / max(len(laggings), 1)
        scores.append(WaitScore(wait, mean, bleu([translation.text for translation in translations])))
    return scores
