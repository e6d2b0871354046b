"""Embeddings that start from pretrained word vectors.

The format is the text of word2vec and fastText, plain, gzip or xz: a line ``token number number …`` for each token,
with spaces in between; before them there may be a line ``count width``, whose count is not used. If a token occurs
several times, the first vector counts. Bytes that are not UTF-8 are in no vocabulary.

A token of a vocabulary gets the vector of the token with the same spelling or, if the file has none, with the same
spelling except for the mark U+2581 at the beginning of a word. So words get word vectors, and pieces get vectors of
pieces or of whole words.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.core.errors import InputError
from nmt.data.corpus import whole_lines
from nmt.data.prepared import PreparedData
from nmt.data.tokenizer import MARK
from nmt.data.vocabulary import EOS, PAD
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.config import EmbeddingConfig

_HEADER = re.compile(rb"\d{1,18} (\d{1,9})")


def start_from_vectors(model: Seq2Seq[Any, Any], config: EmbeddingConfig, data: PreparedData) -> list[str]:
    """Fills the embeddings of a new model for which ``config.pretrained`` has files. Returns a text about each: the
    share of the vocabulary, without special tokens, and of the training corpus that has vectors.

    Raises InputError for a file that cannot be read, is malformed, has vectors of another width, or has none of the
    tokens.
    """
    assert config.pretrained is not None
    weights = dict(model.named_parameters(remove_duplicate=False))
    lines, read, filled = list[str](), set[tuple[str, Path]](), dict[str, npt.NDArray[np.bool_]]()
    for side, module, tokenizer, path in (
        ("source", "encoder", data.tokenizers.source, config.pretrained.source),
        ("target", "decoder", data.tokenizers.target, config.pretrained.target),
    ):
        if path is None:
            continue
        table, tokens = "both" if config.tie == "all" else side, tokenizer.size
        filled_V, is_word_V = filled.setdefault(table, np.zeros(tokens, bool)), np.arange(tokens) > EOS
        if (table, path) not in read:
            read.add((table, path))
            wanted = [row for row in range(tokens) if row != PAD and not filled_V[row]]
            weight_VD = weights[f"{module}.embedding.table.weight"]
            found_V = fill_rows(weight_VD, tokenizer.pieces(range(tokens)), path, wanted)
            if not (found_V & is_word_V).any():
                raise InputError(f"{path}: has no vector for any {side} token; is it of that language, and its case?")
            filled_V |= found_V
        count_V, covered_V = data.train.token_counts(side, tokens), filled_V & is_word_V
        share = count_V[covered_V].sum() / max(count_V.sum(), 1)
        lines.append(
            f"{side}: for {covered_V.sum():,} of {is_word_V.sum():,} tokens, {share:.1%} of the running "
            f"tokens, from {path}{', frozen' * config.pretrained.frozen}"
        )
    return lines


@torch.no_grad()
def fill_rows(weight_VD: Tensor, pieces: Sequence[str], path: Path, wanted: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Fills the wanted rows of a table with the vectors of their pieces; returns a mask of the rows that have got
    one."""
    exact = {pieces[row].encode(): row for row in wanted}
    bare = {pieces[row].removeprefix(MARK).encode(): row for row in wanted if pieces[row].startswith(MARK)}
    rank_V = np.zeros(len(pieces), np.int8)  # 2: vector of the piece, 1: of the word without mark, 0: none
    for token, vector_D in read_vectors(path, exact.keys() | bare.keys(), weight_VD.shape[1]):
        for rank, row in ((2, exact.get(token)), (1, bare.get(token))):
            if row is not None and rank_V[row] < rank:
                rank_V[row] = rank
                weight_VD[row] = torch.from_numpy(vector_D)
    found_V: npt.NDArray[np.bool_] = rank_V > 0
    return found_V


def read_vectors(path: Path, tokens: Container[bytes], width: int) -> Iterator[tuple[bytes, npt.NDArray[np.float32]]]:
    """Yields the vectors of some tokens, (width,), in the order of the file. The numbers of other lines are counted,
    not parsed. Raises InputError, which names the line."""
    number = 0
    for block in whole_lines(path):
        for line in map(bytes.strip, block.removesuffix(b"\n").split(b"\n")):
            number += 1
            header = _HEADER.fullmatch(line) if number == 1 else None
            found = int(header[1]) if header is not None else line.count(b" ")
            if found != width and header is None:
                found = max(len(line.split()) - 1, 0)  # there may be tabs, or several spaces
            if found != width:
                raise InputError(f"{path}:{number}: needs a token and {width} numbers (embedding.size), not {found}")
            if header is None and (token := line.split(None, 1)[0]) in tokens:
                try:
                    values = [float(value) for value in line.split()[1:]]
                except ValueError:
                    values = []
                with np.errstate(over="ignore"):
                    vector_D = np.array(values, np.float32) + np.float32(0.0)  # averaging weights turns -0.0 into 0.0
                if len(vector_D) != width or not np.isfinite(vector_D).all():
                    raise InputError(f"{path}:{number}: expected {width} finite numbers after the token")
                yield token, vector_D
