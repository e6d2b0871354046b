"""Links between words, from files to the tokens of a batch."""

from __future__ import annotations

import gzip
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.batching import collate, halves
from nmt.data.sampling import SubwordSampling
from nmt.data.store import WORDS, Store
from nmt.data.token_links import TokenLinks, collate_linked, token_links
from nmt.data.tokenizer import Tokenizer
from nmt.workflows import build_corpus
from tests.data.conftest import prepared, refusal

Pair = tuple[str, str]
Link = tuple[int, int]
Expected = dict[tuple[str, int], list[Link]]


def any_links(pairs: list[Pair]) -> list[list[Link]]:
    """Draws up to six links for each sentence pair, and none for one in four."""
    draw = random.Random(4)
    found = []
    for source, target in pairs:
        sizes = len(source.split()), len(target.split())
        count = draw.choice([0, 2, 4, 6]) if min(sizes) else 0
        found.append(sorted({(draw.randrange(sizes[0]), draw.randrange(sizes[1])) for _ in range(count)}))
    return found


def line_of(links: list[Link]) -> str:
    return " ".join(f"{source}-{target}" for source, target in links)


def write(path: Path, lines: list[str]) -> Path:
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def corpora(tmp_path: Path, pairs: list[Pair]) -> tuple[Any, Expected, dict[tuple[str, int], Pair]]:
    """Three corpora full of what filters drop, the second without links; the links and the pairs by file and line."""
    odd = [
        ("", "x"),
        ("a\0b", "x y"),
        ("same", "same"),
        pairs[399],
        pairs[2],
        ("der Hund " * 150, "x"),
        ("." * 60, "a"),
    ]
    first, second, third = pairs[:150] + odd + pairs[150:180], pairs[180:250], [pairs[7], *pairs[250:300]]
    source, target = write(tmp_path / "a.de", [s for s, _ in first]), write(tmp_path / "a.en", [t for _, t in first])
    trees: list[dict[str, Any]] = [
        {"source": source, "target": target},
        {"pairs": write(tmp_path / "b.tsv", [f"{s}\t{t}" for s, t in second])},
        {"pairs": write(tmp_path / "c.tsv.gz", [f"{s}\t{t}" for s, t in third]), "weight": 2},
    ]
    expected: Expected = {}
    names = [f"{source} + {target}", str(trees[1]["pairs"]), str(trees[2]["pairs"])]
    for number, part in ((0, first), (2, third)):
        links = any_links(part)
        trees[number]["links"] = write(tmp_path / f"{number}.align{'.gz' * (number == 2)}", list(map(line_of, links)))
        expected |= {(names[number], line): each for line, each in enumerate(links, 1)}
    parts = zip(names, (first, second, third), strict=True)
    return trees, expected, {(name, line): pair for name, part in parts for line, pair in enumerate(part, 1)}


def checked(store: Store, expected: Expected) -> int:
    """Checks that each pair has the links of its line; returns the number of pairs with links."""
    linked = 0
    for index in range(len(store)):
        links = [tuple(each) for each in store.links(index).tolist()]
        assert links == expected.get(tuple(store.line(index)), [])
        linked += len(links) > 0
    assert store.linked_pairs == linked
    return linked


@pytest.mark.parametrize("sampling", [0.0, 0.1])
def test_links_follow_their_pairs_through_all_filters(
    sampling: float, tmp_path: Path, corpora: Any, pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    trees, expected, texts = corpora
    monkeypatch.setattr(build_corpus, "read_linked_blocks", partial(build_corpus.read_linked_blocks, size=37))
    valid = {"pairs": write(tmp_path / "valid.tsv", ["\t".join(pairs[399])])}
    made = prepared(tmp_path / "run", train=trees, valid=valid, subwords={"size": 120, "sampling": sampling})
    dropped = made.report.corpora[0].dropped
    kinds = ("empty", "control characters", "identical", "held out", "duplicate", "too long", "length ratio")
    assert [dropped[kind].pairs for kind in kinds] == [1] * 7
    assert checked(made.train, expected) > 100
    assert made.train.has_text == (sampling > 0)
    for index in range(0 if sampling else len(made.train)):
        if len(made.train.links(index)):
            source, target = texts[made.train.line(index)]
            words = made.train.words(index)
            assert words[0].tolist() == list(made.tokenizers.source.encode_words(source).word_of_piece)
            assert words[1].tolist() == list(made.tokenizers.target.encode_words(target).word_of_piece)


def test_a_store_without_links_is_what_it_was(tmp_path: Path, pairs: list[Pair]) -> None:
    path = write(tmp_path / "train.tsv", [f"{s}\t{t}" for s, t in pairs])
    made = prepared(tmp_path / "run", train={"pairs": path}, seed=3)
    assert not made.train.has_links
    assert made.train.linked_pairs == 0
    columns = ["source", "source.offsets", "target", "target.offsets", "corpus", "line"]
    assert list(json.loads((made.folder / "train" / "store.json").read_bytes())["columns"]) == columns
    assert {each.name for each in (made.folder / "train").iterdir()} == {"store.json", *(f"{c}.bin" for c in columns)}


TWO = [("der Hund läuft", "the dog runs"), ("eine Katze", "a cat")]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        pytest.param(["0-0", "1-0 x"], ":2: 'x' is not a link: write 3-4", id="no link"),
        pytest.param(["0-0", "1p0"], ":2: 1p0 is a possible link", id="possible"),
        pytest.param(["3-0", ""], ":1: link '3-0' points at source word 3, but that sentence has 3 words", id="source"),
        pytest.param(["0-0", "0-2"], ":2: link '0-2' points at target word 2, but that sentence has 2", id="target"),
        pytest.param(["0-0"], ": 1 lines for the 2 pairs of ", id="fewer"),
        pytest.param(["0-0", "", "1-1", ""], ": 4 lines for the 2 pairs of ", id="more"),
        pytest.param([], ": 0 lines for the 2 pairs of ", id="empty file"),
    ],
)
def test_wrong_links_are_one_line_with_the_place(lines: list[str], says: str, tmp_path: Path) -> None:
    """The links of a pair that no filter would let pass are checked, too."""
    train = write(tmp_path / "train.tsv", [f"{s}\t{t}" for s, t in TWO])
    links = write(tmp_path / "train.align", lines)
    options: dict[str, Any] = {"filters": {"max_length": 1}, "subwords": {"kind": "char"}}
    message = refusal(prepared, tmp_path / "run", train={"pairs": train, "links": links}, **options)
    assert message.startswith(f"{links}{says}")
    assert not (tmp_path / "run" / "prepared").exists()


def test_links_that_are_not_there_or_too_far_out(tmp_path: Path) -> None:
    train = write(tmp_path / "train.tsv", ["x " * (WORDS + 5) + "\ty"])
    links = tmp_path / "train.align"
    corpus, subwords = {"pairs": train, "links": links}, {"kind": "char"}
    assert refusal(prepared, tmp_path / "run", train=corpus, subwords=subwords) == f"{links}: no such file"
    write(links, [f"{WORDS}-0"])
    says = f"{links}:1: a link points at word {WORDS}, but only the first {WORDS}"
    assert refusal(prepared, tmp_path / "run", train=corpus, subwords=subwords).startswith(says)


# ---------------------------------------------------------------------------------------------------- links of tokens

SENTENCES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 4), max_size=6).map(sorted),
        st.lists(st.integers(0, 4), max_size=6).map(sorted),
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=5, unique=True),
    ),
    max_size=4,
)


def by_loops(sentences: list[tuple[list[int], list[int], list[Link]]]) -> dict[tuple[int, int, int], float]:
    """The share of each link, by sentence, target and source token."""
    found = {}
    for sentence, (source_words, target_words, links) in enumerate(sentences):
        for target, target_word in enumerate(target_words):
            looked_at = [s for s, source_word in enumerate(source_words) if (source_word, target_word) in links]
            for source in looked_at:
                found[sentence, target, source] = 1 / len(looked_at)
    return found


def as_dict(links: TokenLinks) -> dict[tuple[int, int, int], float]:
    keys = list(zip(links.sentence_E.tolist(), links.target_E.tolist(), links.source_E.tolist(), strict=True))
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, links.share_E.tolist(), strict=True))


@settings(max_examples=60)
@given(sentences=SENTENCES)
def test_links_of_words_are_links_of_all_their_tokens(sentences: list[tuple[list[int], list[int], list[Link]]]) -> None:
    links = token_links(
        [np.array(each, np.uint16).reshape(-1, 2) for _, _, each in sentences],
        [words for words, _, _ in sentences],
        [words for _, words, _ in sentences],
    )
    expected = by_loops(sentences)
    assert as_dict(links) == pytest.approx(expected)
    assert links.targets == len({(sentence, target) for sentence, target, _ in expected})
    rows = np.arange(len(sentences))[::-2]
    some = {(rows.tolist().index(b), t, s): share for (b, t, s), share in expected.items() if b in rows}
    assert as_dict(links.of(rows)) == pytest.approx(some)


def test_a_batch_has_the_links_of_its_tokens(tmp_path: Path, corpora: Any) -> None:
    trees, expected, texts = corpora
    made = prepared(tmp_path / "run", train=trees)
    pairs_B = np.arange(0, len(made.train), 3)
    batch = collate_linked(made.train, pairs_B)
    plain = collate(made.train, pairs_B)
    assert plain.links is None
    assert np.array_equal(batch.source_BS, plain.source_BS)
    assert np.array_equal(batch.target_BT, plain.target_BT)
    sentences = []
    for index in pairs_B.tolist():
        source, target = texts[made.train.line(index)]
        links = expected.get(tuple(made.train.line(index)), [])
        words = [made.tokenizers.source.encode_words(side).word_of_piece for side in (source, target)]
        sentences.append((list(words[0]), list(words[1]), links))
    assert batch.links is not None
    assert as_dict(batch.links) == pytest.approx(by_loops(sentences))
    parts = halves(batch)
    assert [len(part.pairs_B) for part in parts] == [len(pairs_B) // 2, -(-len(pairs_B) // 2)]
    found = {}
    for part in parts:
        assert part.links is not None
        place = [pairs_B.tolist().index(pair) for pair in part.pairs_B.tolist()]
        found |= {(place[b], t, s): share for (b, t, s), share in as_dict(part.links).items()}
    assert found == pytest.approx(as_dict(batch.links))


# ---------------------------------------------------------------------------------------------------- sampled subwords


def words_of(tokenizer: Tokenizer, ids: Any) -> list[int]:
    """The word of each piece: the first piece of a word has a mark."""
    words: list[int] = np.cumsum([piece.startswith("\u2581") for piece in tokenizer.pieces(ids)]).tolist()
    return [word - 1 for word in words]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_sampled_subwords_have_the_links_of_their_words(kind: str, tmp_path: Path, corpora: Any) -> None:
    trees, expected, _ = corpora
    made = prepared(tmp_path / "run", train=trees, subwords={"kind": kind, "size": 120, "sampling": 0.3})
    pairs_B = np.arange(0, len(made.train), 2)
    drawn = []
    for epoch in (0, 1):
        sampling = SubwordSampling(made.tokenizers, 0.3, seed=5, epoch=epoch)
        batch = collate_linked(made.train, pairs_B, sampling=sampling)
        plain = collate(made.train, pairs_B, sampling=sampling)
        assert np.array_equal(batch.source_BS, plain.source_BS)
        assert np.array_equal(batch.target_BT, plain.target_BT)
        sentences = []
        for row, index in enumerate(pairs_B.tolist()):
            source = words_of(made.tokenizers.source, batch.source_BS[row, : batch.source_length_B[row] - 1])
            target = words_of(made.tokenizers.target, batch.target_BT[row, : batch.target_length_B[row] - 1])
            assert [source[-1] + 1, target[-1] + 1] == [len(side.split()) for side in made.train.text(index)]
            sentences.append((source, target, expected.get(tuple(made.train.line(index)), [])))
        assert batch.links is not None
        assert as_dict(batch.links) == pytest.approx(by_loops(sentences))
        drawn.append(as_dict(batch.links))
    assert drawn[0] != drawn[1]
