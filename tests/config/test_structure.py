"""Configuration trees: what is accepted, every error word for word, and exact round trips."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError, field_validator, model_validator

from nmt.config.structure import Structure, differences, dump, load_document, validate
from nmt.config.yaml_source import Override, parse_document, write
from nmt.core.errors import InputError
from nmt.search.config import SearchConfig


class Rnn(Structure):
    kind: Literal["rnn"] = "rnn"
    cell: Literal["gru", "lstm"] = "gru"
    layers: int = Field(default=1, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    bidirectional: bool = True


class Transformer(Structure):
    kind: Literal["transformer"] = "transformer"
    layers: int = 2
    heads: int = 4


Encoder = Annotated[Rnn | Transformer, Field(discriminator="kind")]


class Model(Structure):
    encoder: Encoder = Rnn()
    extra_encoder: Encoder | None = None
    size: int = 3


class Corpus(Structure):
    source: Path
    target: Path | None = None
    weight: float = Field(default=1.0, gt=0)


class Data(Structure):
    train: tuple[Corpus, ...] = ()
    languages: tuple[str, str] = ("de", "en")
    lengths: dict[str, int] = Field(default_factory=dict)
    prefix: str = Field(default="p", min_length=1, pattern="^p")


class Experiment(Structure):
    run: str
    seed: int = 1
    limit: int | Literal["auto"] | None = None
    model: Model = Model()
    data: Data = Data()

    @field_validator("seed")
    @classmethod
    def _not_unlucky(cls, seed: int) -> int:
        if seed == 13:
            raise ValueError("13 brings bad luck, take another")
        return seed

    @model_validator(mode="after")
    def _runs_differ(self) -> Experiment:
        if self.run == "bad":
            raise ValueError("a run may not be called bad")
        return self


def read(text: str, *overrides: str) -> Experiment:
    return validate(Experiment, parse_document(text, "c.yaml", overrides))


def message(text: str, *overrides: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text, *overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------- what is accepted


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-3", 1e-3),
        ("1E3", 1000.0),
        ("-.5", -0.5),
        ("1_000", 1000),
        ("010", 10),
        (".inf", float("inf")),
        ("-.Inf", float("-inf")),
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("2020-01-01", "2020-01-01"),
        ("0x10", "0x10"),
        ("1_", "1_"),
        ("~", None),
        ("", None),
        ("'3'", "3"),
        ("${HOME:-here}/x", "${HOME:-here}/x"),
        ("=", "="),
    ],
)
def test_plain_words_mean_what_yaml_1_2_says(written: str, value: Any) -> None:
    found = parse_document(f"key: {written}", "c.yaml").tree["key"]
    assert found == value
    assert type(found) is type(value)


def test_a_fault_of_an_option_is_told_in_the_words_of_the_option() -> None:
    assert message("run: a", Override("seed=x", "--seed x")) == "--seed x: expected a whole number, found text 'x'"
    assert message("run: a", Override("seed=13", "--seed 13")) == "--seed 13: 13 brings bad luck, take another"
    with pytest.raises(InputError) as caught:
        validate(SearchConfig, parse_document("{}", "c.yaml", [Override("n_best=30", "--n-best 30")]))
    assert str(caught.value) == "--n-best 30: 30 translations need as many beams, not 5; add --beam 30"
    with pytest.raises(InputError, match="n_best=30: 30 translations need as many beams, not 5; add beam=30"):
        validate(SearchConfig, parse_document("{}", "c.yaml", [Override("n_best=30", "n_best=30")]))


@pytest.mark.parametrize("text", ["no", "null", "1", ">>fra<<", "[a]", "'", "# x", " a ", "\n"])
def test_the_text_of_an_option_is_not_yaml(text: str) -> None:
    change = Override(f"search.to={text}", f"--to {text}", is_text=True)
    for each in (change, pickle.loads(pickle.dumps(change))):
        assert parse_document("{a: 1}", "c.yaml", [each]).tree["search"]["to"] == text
    assert parse_document("a: 1", "c.yaml", [Override("a=1e3", "--a 1e3")]).tree["a"] == 1000.0


def test_nested_choices_lists_and_defaults() -> None:
    experiment = read(
        """
        run: a
        model:
          encoder: {kind: transformer, heads: 8}
          extra_encoder: {kind: rnn}
        data:
          train:
            - {source: a.de, weight: 2}
            - source: b.de
        """
    )
    assert experiment.model == Model(encoder=Transformer(heads=8), extra_encoder=Rnn())
    assert [corpus.source for corpus in experiment.data.train] == [Path("a.de"), Path("b.de")]
    assert experiment.data.train[0].weight == 2.0
    assert type(experiment.data.train[0].weight) is float


def test_structures_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Model().size = 4  # type: ignore[misc]


def test_an_alias_stands_for_its_value() -> None:
    experiment = read("run: a\nmodel:\n  encoder: &e {kind: rnn, layers: 3}\n  extra_encoder: *e\n")
    assert experiment.model.extra_encoder == Rnn(layers=3)


def test_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"\xef\xbb\xbfrun: a\r\nseed: 3\r\n")
    assert validate(Experiment, load_document(path)) == Experiment(run="a", seed=3)


# ------------------------------------------------------------------------------------------------- overrides


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("seed=3", "run: a\nseed: 3"),
        (" seed = 3 ", "run: a\nseed: 3"),
        ("run=x=y", "run: x=y"),
        ("model.size=5", "run: a\nmodel: {size: 5}"),
        ("model.encoder={kind: rnn, dropout: 1e-3}", "run: a\nmodel: {encoder: {kind: rnn, dropout: 0.001}}"),
        ("model.encoder.kind=rnn", "run: a\nmodel: {encoder: {kind: rnn}}"),
        ("data.train=[{source: f}]", "run: a\ndata: {train: [{source: f}]}"),
        ("limit=", "run: a"),
        ("limit=auto", "run: a\nlimit: auto"),
    ],
)
def test_an_override_is_as_if_written_in_the_file(override: str, text: str) -> None:
    assert read("run: a", override) == read(text)


def test_overrides_reach_into_lists_and_the_last_one_wins() -> None:
    text = "run: a\ndata:\n  train:\n    - source: x\n    - source: y\n"
    experiment = read(text, "data.train.1.source=w", "data.train.1.source=z", "data.train.0.weight=3")
    assert experiment.data.train == (Corpus(source=Path("x"), weight=3.0), Corpus(source=Path("z")))


def test_a_section_without_entries_can_be_filled() -> None:
    assert read("run: a\nmodel:\n", "model.size=4").model.size == 4


# ------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # unknown keys
        ("run: a\nsede: 3", "c.yaml:2: sede: unknown key; did you mean 'seed'?"),
        ("# c\nrunn: a", "c.yaml:2: runn: unknown key; did you mean 'run'?"),
        (
            "run: a\nmodel:\n  encoder:\n    kind: rnn\n\n    layer: 3",
            "c.yaml:6: model.encoder.layer: unknown key; did you mean 'layers'?",
        ),
        (
            "run: a\ndata:\n  train:\n  - source: x\n  - sauce: y",
            "c.yaml:5: data.train.1.sauce: unknown key; did you mean 'source'?",
        ),
        (
            "run: a\nmodel:\n  extra_encoder: {kind: transformer, cell: gru}",
            "c.yaml:3: model.extra_encoder.cell: unknown key for kind 'transformer'; it belongs to kind 'rnn'",
        ),
        ("run: a\nweight: 2", "c.yaml:2: weight: unknown key; it belongs at 'data.train.0.weight'"),
        (
            "run: a\nmodel: {heads: 2}",
            "c.yaml:2: model.heads: unknown key; it belongs at 'model.encoder.heads' or 'model.extra_encoder.heads'",
        ),
        (
            "run: a\nmodel:\n  zzz: 1\nqqq: 2",
            (
                "c.yaml:3: model.zzz: unknown key; the keys here are encoder, extra_encoder, size; "
                "c.yaml:4: qqq: unknown key; the keys here are run, seed, limit, model, data"
            ),
        ),
        # missing keys
        ("seed: 3", "c.yaml:1: run: missing; add this key"),
        ("run: a\ndata:\n  train:\n  - weight: 2", "c.yaml:4: data.train.0.source: missing; add this key"),
        (
            "run: a\nmodel:\n  encoder:\n    layers: 2",
            "c.yaml:3: model.encoder.kind: missing; add one of rnn, transformer",
        ),
        ("run: a\ndata:\n  languages: [de]", "c.yaml:3: data.languages.1: missing; add this entry"),
        # choices
        (
            "run: a\nmodel:\n  encoder:\n    kind: rn",
            (
                "c.yaml:4: model.encoder.kind: text 'rn' is not a choice; did you mean 'rnn'? "
                "the choices are rnn, transformer"
            ),
        ),
        (
            "run: a\nmodel: {encoder: {kind: }}",
            "c.yaml:2: model.encoder.kind: nothing is not a choice; the choices are rnn, transformer",
        ),
        (
            "run: a\nmodel: {extra_encoder: {kind: rnn, cell: elman}}",
            "c.yaml:2: model.extra_encoder.cell: text 'elman' is not a choice; the choices are gru, lstm",
        ),
        # types
        ("run: 3", "c.yaml:1: run: expected text, found 3; put it in quotes"),
        ("run: a\nseed: '3'", "c.yaml:2: seed: expected a whole number, found text '3'; remove the quotes"),
        ("run: a\nseed: 3.0", "c.yaml:2: seed: expected a whole number, found 3.0"),
        ("run: a\nseed: true", "c.yaml:2: seed: expected a whole number, found true"),
        ("run: a\nseed: .nan", "c.yaml:2: seed: expected a whole number, found nan"),
        ("run: a\nlimit: many", "c.yaml:2: limit: expected a whole number or 'auto', found text 'many'"),
        ("run: a\nmodel:", "c.yaml:2: model: expected keys with values, found nothing"),
        ("run: a\nmodel: {encoder: rnn}", "c.yaml:2: model.encoder: expected keys with values, found text 'rnn'"),
        (
            "run: a\nmodel: {encoder: {kind: rnn, bidirectional: yes}}",
            "c.yaml:2: model.encoder.bidirectional: expected true or false, found text 'yes'",
        ),
        ("run: a\ndata: {train: x}", "c.yaml:2: data.train: expected a list, found text 'x'"),
        ("run: a\ndata: {train: {source: x}}", "c.yaml:2: data.train: expected a list, found keys with values"),
        ("run: a\ndata: {lengths: {de: x}}", "c.yaml:2: data.lengths.de: expected a whole number, found text 'x'"),
        ("run: a\ndata: {lengths: 3}", "c.yaml:2: data.lengths: expected keys with values, found 3"),
        (
            "run: a\ndata: {train: [{source: x, weight: .inf}]}",
            "c.yaml:2: data.train.0.weight: expected a finite number, found inf",
        ),
        (
            "run: a\ndata: {train: [{source: 3}]}",
            "c.yaml:2: data.train.0.source: expected text, found 3; put it in quotes",
        ),
        # bounds
        (
            "run: a\ndata: {train: [{source: x, weight: 0}]}",
            "c.yaml:2: data.train.0.weight: expected more than 0, found 0",
        ),
        (
            "run: a\nmodel: {encoder: {kind: rnn, layers: 0}}",
            "c.yaml:2: model.encoder.layers: expected at least 1, found 0",
        ),
        (
            "run: a\nmodel: {encoder: {kind: rnn, dropout: 1.0}}",
            "c.yaml:2: model.encoder.dropout: expected less than 1, found 1.0",
        ),
        (
            "run: a\ndata: {languages: [a, b, c]}",
            "c.yaml:2: data.languages: expected a list of at most 2, found a list of 3",
        ),
        ("run: a\ndata: {prefix: ''}", "c.yaml:2: data.prefix: expected text of at least 1 characters, found text ''"),
        ("run: a\ndata: {prefix: x}", "c.yaml:2: data.prefix: expected text like ^p, found text 'x'"),
        # the classes' own checks
        ("run: a\nseed: 13", "c.yaml:2: seed: 13 brings bad luck, take another"),
        ("\nrun: bad", "c.yaml:2: a run may not be called bad"),
        # several
        (
            "run: a\nseed: x\nlimit: 1.5\nsize: 3",
            (
                "c.yaml:4: size: unknown key; it belongs at 'model.size'; "
                "c.yaml:2: seed: expected a whole number, found text 'x'; "
                "c.yaml:3: limit: expected a whole number or 'auto', found 1.5"
            ),
        ),
        # YAML
        ("", "c.yaml: is empty; a configuration needs at least one 'key: value' line"),
        ("# only a comment\n", "c.yaml: is empty; a configuration needs at least one 'key: value' line"),
        ("- a\n- b", "c.yaml:1: expected 'key: value' lines, found a list of 2"),
        ("\njust text", "c.yaml:2: expected 'key: value' lines, found text 'just text'"),
        ("run: a\n\tseed: 3", "c.yaml:2: not valid YAML: indented with a tab; use spaces"),
        ("run: a: b", "c.yaml:1: not valid YAML: mapping values are not allowed here"),
        ("run: [a", "c.yaml:1: not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("run: a\n---\nrun: b", "c.yaml:2: not valid YAML: a second document starts here; a configuration is one"),
        ('run: "\\UFFFFFFFF"', "c.yaml:1: not valid YAML: an escape that is not a character"),
        ('run: a\nx: "\\ud800"', "c.yaml:2: an escape in this text is half of a character (a lone surrogate)"),
        ("run: a\nx: \x00", "c.yaml:2: the character U+0000 is not allowed in YAML"),
        ("run: " + "[" * 3000, "c.yaml:1: nested too deeply"),
        ("run: &a [*a]", "c.yaml:1: an alias may not stand for something that contains it"),
        ("run: *a", "c.yaml:1: not valid YAML: found undefined alias 'a'"),
        (
            "run: !!python/name:os.system ''",
            "c.yaml:1: the tag tag:yaml.org,2002:python/name:os.system is not supported; write plain values",
        ),
        ("run: !!set {a}", "c.yaml:1: the tag tag:yaml.org,2002:set is not supported; write plain values"),
        ("run: !!int x", "c.yaml:1: x is not a valid int"),
        ("run: a\n? [b]\n: c", "c.yaml:2: a key must be a plain word"),
        ("run: a\nseed: 1\nrun: b", "c.yaml:3: run: written twice, first on line 1; keep one of them"),
        (
            "run: a\nmodel:\n  size: 1\n  size: 1",
            "c.yaml:4: model.size: written twice, first on line 3; keep one of them",
        ),
    ],
)
def test_errors_of_a_file(text: str, expected: str) -> None:
    assert message(text) == expected


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("sede=3", "--set sede=3: sede: unknown key; did you mean 'seed'?"),
        ("model.sice=3", "--set model.sice=3: model.sice: unknown key; did you mean 'size'?"),
        ("modl.size=3", "--set modl.size=3: modl: unknown key; did you mean 'model'?"),
        ("seed=x", "--set seed=x: seed: expected a whole number, found text 'x'"),
        ("data.train.0.wait=3", "--set data.train.0.wait=3: data.train.0.wait: unknown key; did you mean 'weight'?"),
        (
            "model.encoder={kind: rnn, cel: gru}",
            "--set model.encoder={kind: rnn, cel: gru}: model.encoder.cel: unknown key; did you mean 'cell'?",
        ),
        ("seed", "--set seed: expected dotted.key=value, for example model.encoder.layers=2"),
        ("=3", "--set =3: expected dotted.key=value, for example model.encoder.layers=2"),
        ("a..b=3", "--set a..b=3: expected dotted.key=value, for example model.encoder.layers=2"),
        ("seed=[1", "--set seed=[1: not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("run.name=x", "--set run.name=x: run is text 'a', so it has no key 'name'"),
        (
            "data.train.1.source=x",
            "--set data.train.1.source=x: data.train is a list of 1 entry, and has no '1'; count from 0 to 0",
        ),
        (
            "data.train.source=x",
            "--set data.train.source=x: data.train is a list of 1 entry, and has no 'source'; count from 0 to 0",
        ),
    ],
)
def test_errors_of_an_override_name_the_override(override: str, expected: str) -> None:
    assert message("run: a\ndata:\n  train:\n  - source: x\n", override) == expected


def test_a_fault_in_the_file_keeps_its_line_under_overrides() -> None:
    assert message("run: a\nseed: x", "model.size=3") == "c.yaml:2: seed: expected a whole number, found text 'x'"


def test_replacing_a_section_forgets_the_lines_of_what_it_held() -> None:
    text = "run: a\nmodel:\n  encoder:\n    kind: rnn\n    layers: 1\n"
    override = "model={encoder: {kind: rnn, layers: x}}"
    assert message(text, override) == f"--set {override}: model.encoder.layers: expected a whole number, found text 'x'"


def test_aliases_of_aliases_do_not_fill_the_memory() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join(['*' + before] * 10)}]")
    assert "more than 100,000 entries" in message("\n".join(lines))


@pytest.mark.parametrize(
    ("data", "expected"),
    [(None, "{path}: no such file"), (b"run: a\nx: \xff\n", "{path}:2: not UTF-8 text (byte 0xff)")],
)
def test_files_that_cannot_be_read(tmp_path: Path, data: bytes | None, expected: str) -> None:
    path = tmp_path / "c.yaml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_document(path)
    assert str(caught.value) == expected.format(path=path)


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_document(tmp_path)
    assert str(caught.value) == f"{tmp_path}: is a folder, but a YAML file is needed"


# ------------------------------------------------------------------------------------------- writing and comparing


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(
        ["no", "1e-3", "1_000", "010", "~", "", " x", "a: b", "- a", "#", "\u2028", "\x85", "\ufeff", "1:30"]
    )
)
TREES = st.dictionaries(
    st.text(),
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)),
    min_size=1,
    max_size=4,
)


@given(TREES)
def test_what_is_written_reads_back_the_same(tree: dict[str, Any]) -> None:
    found = parse_document(write(tree), "c.yaml").tree
    assert found == tree
    assert repr(found) == repr(tree)  # also the types, the order of keys, and the sign of zero


@given(
    st.builds(
        Experiment,
        run=st.text().filter(lambda run: run != "bad"),
        seed=st.integers(min_value=14),
        limit=st.none() | st.integers() | st.just("auto"),
        model=st.builds(
            Model,
            encoder=st.builds(Rnn, dropout=st.floats(0, 1, exclude_max=True), layers=st.integers(min_value=1))
            | st.builds(Transformer),
        ),
        data=st.builds(Data, train=st.lists(st.builds(Corpus, source=st.text("abc/. ").map(Path))).map(tuple)),
    )
)
def test_dump_and_load_give_the_same_structure(experiment: Experiment) -> None:
    assert read(dump(experiment)) == experiment


def test_dump_is_complete_and_in_the_order_of_the_classes() -> None:
    assert dump(Model()) == (
        "encoder:\n  kind: rnn\n  cell: gru\n  layers: 1\n  dropout: 0.1\n  bidirectional: true\n"
        "extra_encoder: null\nsize: 3\n"
    )


def test_other_yaml_readers_agree_on_a_dump() -> None:
    assert yaml.safe_load(dump(Data(train=(Corpus(source=Path("a b"), weight=0.5),)))) == {
        "train": [{"source": "a b", "target": None, "weight": 0.5}],
        "languages": ["de", "en"],
        "lengths": {},
        "prefix": "p",
    }


def test_differences_name_the_keys() -> None:
    one = Experiment(run="a", data=Data(train=(Corpus(source=Path("x")),)))
    assert differences(one, one) == []
    assert differences(one, one.model_copy(update={"run": "b", "seed": 2})) == ["run", "seed"]
    other = Experiment(
        run="a",
        model=Model(encoder=Transformer(), extra_encoder=Rnn()),
        data=Data(train=(Corpus(source=Path("y"), weight=2.0),), lengths={"de": 3}),
    )
    assert differences(one, other) == [
        "model.encoder.kind",
        "model.extra_encoder",
        "data.train.0.source",
        "data.train.0.weight",
        "data.lengths.de",
    ]
    assert differences(one, Experiment(run="a")) == ["data.train"]
