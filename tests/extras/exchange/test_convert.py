"""MarianMT models as runs, held to `transformers`: logits, greedy and beam search, and hostile folders."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import Mock

import httpx
import pytest
import torch
from torch import Tensor

import nmt
from nmt import experiment as experiments
from nmt.core.errors import InputError
from nmt.data.vocabulary import EOS
from nmt.extras.aligner import model_aligner
from nmt.extras.exchange.convert.from_marian import import_hf
from nmt.extras.exchange.export import marian
from nmt.extras.trust import calibrate
from nmt.search.engine import TorchEngine
from nmt.translator.loading import TrainedModel, for_inference, load_trained
from tests.extras.exchange.convert.marian_folders import SHAPES, lines, write
from tests.extras.service.test_command import served
from tests.workflows.runs import Command, in_process, write_lines

transformers = pytest.importorskip("transformers")

Folders: TypeAlias = Callable[[str], Path]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """The folder of a shape, written once, and its run beside it, `<folder>.run`."""
    root = tmp_path_factory.mktemp("marian")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()

    @cache
    def made(name: str) -> Path:
        folder = write(root / name, SHAPES[name])
        import_hf(folder, root / f"{name}.run")
        return folder

    return made


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys)


@pytest.fixture
def opus(folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of a run, and the folder in which it is."""
    shutil.copytree(run_of(folders("opus")), tmp_path / "run", symlinks=True)
    monkeypatch.chdir(tmp_path)


def run_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.run")


def theirs(folder: Path) -> tuple[Any, Any]:
    """The tokenizer and the model of `transformers`, in float64."""
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    return tokenizer, transformers.MarianMTModel.from_pretrained(folder).double().eval()


def ours(folder: Path) -> TrainedModel:
    """Our model, in float64."""
    trained = load_trained(run_of(folder), device="cpu", precision="float32", prepare=for_inference.body)
    trained.model.double()
    return trained


def order_of(trained: TrainedModel) -> tuple[Tensor, Tensor]:
    """The ids there of our ids, of source and target."""
    sides = (trained.tokenizers.source.imported, trained.tokenizers.target.imported)
    assert sides[0] is not None
    assert sides[1] is not None
    return torch.tensor(sides[0].order), torch.tensor(sides[1].order)


def padded(rows: list[list[int]]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence([torch.tensor([*row, EOS]) for row in rows], batch_first=True)


@pytest.mark.parametrize("name", SHAPES)
@torch.no_grad()
def test_logits_of_real_sentences_are_those_of_transformers(name: str, folders: Folders) -> None:
    folder, count = folders(name), 60 if name in ("opus", "relu", "separate") else 20
    (tokenizer, model), trained = theirs(folder), ours(folder)
    language = SHAPES[name].languages[:1]
    sources, targets = lines("de", count), lines("en", count)
    texts = [f">>{language[0]}<< {text}" for text in sources] if language else sources
    trained = trained.to(language[0] if language else None)
    x, y = tokenizer(texts, return_tensors="pt", padding=True), tokenizer(text_target=targets, padding=True)
    gold = torch.tensor(y.input_ids)
    logits = model(**x, labels=gold).logits
    source_order, target_order = order_of(trained)
    source_BS = padded(trained.prefixed([trained.tokenizers.source.encode(text) for text in sources]))
    target_BT = padded([trained.tokenizers.target.encode(text) for text in targets])
    assert source_order[source_BS].equal(x.input_ids)
    assert target_order[target_BT].equal(gold)
    readout = trained.model.teacher_forced(target_BT, trained.model.encode(source_BS)).readout_BTR
    is_word = torch.tensor(y.attention_mask).bool()
    assert (trained.model.output(readout) - logits[:, :, target_order])[is_word].abs().max() < 1e-5
    # step by step, as the search computes
    memory = trained.model.encode(source_BS[:3])
    state, token = trained.model.start(memory), trained.model.first_token(3, torch.device("cpu"))
    for place in range(3):
        step = trained.model.step(token, memory, state)
        assert (step.logits_NV - logits[:3, place, target_order]).abs().max() < 1e-5
        token, state = target_BT[:3, place], step.state


def test_greedy_translations_are_those_of_transformers(folders: Folders) -> None:
    folder, sources = folders("opus"), lines("de", 60, "valid")
    tokenizer, model = theirs(folder)
    x = tokenizer(sources, return_tensors="pt", padding=True)
    expected = tokenizer.batch_decode(model.generate(**x, num_beams=1), skip_special_tokens=True)
    assert len(set(expected)) > 30
    trained = ours(folder)
    ids = trained.prefixed([trained.tokenizers.source.encode(text) for text in sources])
    search = trained.experiment.search.model_copy(update={"beam": 1})
    found = [best.tokens for (best,) in TorchEngine(trained.model, trained.compute).translate_ids(ids, search)]
    assert trained.tokenizers.target.detokenize_batch(found) == expected


@pytest.mark.parametrize("renormalized", [True, False])
@torch.no_grad()
def test_beams_score_as_high_as_those_of_transformers(renormalized: bool, folders: Folders, tmp_path: Path) -> None:
    folder, sources = shutil.copytree(folders("opus"), tmp_path / "opus"), lines("de", 60, "valid")
    path = folder / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "renormalize_logits": renormalized}))
    import_hf(folder, run_of(folder))
    tokenizer, model = theirs(folder)
    x = tokenizer(sources, return_tensors="pt", padding=True)
    generated = model.generate(**x, num_beams=4)
    trained, pad = ours(folder), tokenizer.pad_token_id
    _, order = order_of(trained)
    ids = trained.prefixed([trained.tokenizers.source.encode(text) for text in sources])
    engine = TorchEngine(trained.model, trained.compute)
    best = [hypotheses[0] for hypotheses in engine.translate_ids(ids, trained.experiment.search)]

    def scores(rows: list[list[int]]) -> Tensor:
        """Log-probability over length, of tokens to the end-of-sentence, as `generate` ranks them."""
        gold = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=pad)
        logits = model(**x, labels=gold).logits
        if renormalized:
            logits[:, :, pad] = -math.inf
        log_probs = logits.log_softmax(-1).gather(2, gold[:, :, None])[:, :, 0].masked_fill(gold == pad, 0.0)
        return log_probs.sum(1) / torch.tensor([len(row) for row in rows])

    theirs_rows = [[token for token in row[1:].tolist() if token != pad] for row in generated]
    ended = torch.tensor([len(row) < 59 for row in theirs_rows])  # at the limit, the end is forced, and costs nothing
    ours_rows = [order[[*each.tokens, EOS]].tolist() for each in best]
    assert ended.sum() > 25
    assert (scores(ours_rows) > scores(theirs_rows) - 1e-5)[ended].all()
    assert (scores(ours_rows) - torch.tensor([each.score for each in best])).abs().max() < 1e-5


@pytest.mark.usefixtures("opus")
def test_commands_work_on_an_imported_run_as_on_ours(command: Command) -> None:
    sources, targets = [*lines("de", 11, "valid"), "Hund 42"], lines("en", 12, "valid")
    write_lines("de", sources)
    write_lines("en", targets)

    def results(*arguments: str) -> str:
        done = command(*arguments, "--quiet")
        assert done.code == 0, done.stderr
        return done.stdout

    on_cpu = ("--device", "cpu")
    for name, *options in (
        ("translate", "--input", "de"),
        ("translate", "--input", "de", "--precision", "int8"),
        ("score", "--source", "de", "--target", "en"),
        ("align", "-s", "de", "-t", "en", "--choose-heads", "entropy"),
    ):
        assert len(results(name, "run", *on_cpu, *options).splitlines()) == 12
    assert "BLEU" in results("evaluate", "run", *on_cpu, "--source", "de", "--reference", "en")
    for method in ("attention", "shifted-attention", "gradient", "input-x-gradient"):
        rows = results("align", "run", *on_cpu, "-s", "de", "-t", "en", "--method", method).splitlines()
        assert len(rows) == 12
        assert all(rows[:5])
        for row, source, target in zip(rows, sources, targets, strict=True):
            for link in row.split():
                before, after = map(int, link.split("-"))
                assert before < len(source.split())
                assert after < len(target.split())
    said = results("info", "run")
    assert "imported" in said
    assert "nmt init NAME --from run" in said
    assert "nmt aligner run SOURCE TARGET" in said
    assert "name pairs or fine-tune it" in command("aligner", "run", *on_cpu).stderr
    results("report", "run", *on_cpu)
    assert "imported" in Path("run/report.html").read_text(encoding="utf-8")
    refused = command("train", "run/config.yaml")
    assert (refused.code, "nmt init NAME --from" in refused.stderr) == (2, True)


def test_an_imported_run_is_served(folders: Folders, tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(run_of(folders("opus")))
    texts = lines("de", 5, "valid")
    with served(tmp_path) as (_, address, _):
        answer = httpx.post(f"{address}/translate", json={"text": texts}, timeout=60, trust_env=False)
    expected = nmt.load(tmp_path / "run", device="cpu", precision="float32").translate(texts)
    found = [each["translations"][0]["text"] for each in answer.json()["results"]]
    assert found == [translation.text for translation in expected]


@pytest.mark.usefixtures("opus")
def test_an_aligner_is_learnt_for_an_imported_run(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_aligner, "UPDATES", 5)
    for language in ("de", "en"):
        write_lines(language, lines(language, 100))
    pairs = ("--source", "de", "--target", "en", "--device", "cpu")
    assert command("aligner", "run", *pairs).code == 0
    done = command("align", "run", *pairs, "--method", "trained")
    assert (done.code, len(done.stdout.splitlines())) == (0, 100)


@pytest.mark.usefixtures("opus")
def test_an_imported_run_is_calibrated_on_given_pairs(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second pair is translated; the lexicon, which training pairs would give, is learnt from the others."""
    learn = Mock(wraps=calibrate.learn_lexicon)
    monkeypatch.setattr(calibrate, "learn_lexicon", learn)
    monkeypatch.setattr(calibrate, "MIN_PAIRS", 0)
    sides = lines("de", 40), lines("en", 40)
    Path("x.tsv").write_text("".join(map("{}\t{}\n".format, *sides)), encoding="utf-8")
    on_cpu = ("run", "--device", "cpu")
    assert "give files: nmt calibrate RUN FILE FILE" in command("calibrate", *on_cpu).stderr
    done = command("calibrate", *on_cpu, "x.tsv")
    assert done.code == 0, done.stderr
    tokenizers = nmt.load("run").trained.tokenizers
    source, target = tokenizers.source.encode_batch(sides[0][1::2]), tokenizers.target.encode_batch(sides[1][1::2])
    learnt = [(of_source.tolist(), of_target.tolist()) for of_source, of_target in learn.call_args.args[0]]
    assert learnt == [*zip(source, target, strict=True)]
    write_lines("de", sides[0])
    done = command("translate", *on_cpu, "--input", "de", "--confidence")
    assert (done.code, len(done.stdout.splitlines())) == (0, 40)


@pytest.mark.parametrize("to", ["ctranslate2", pytest.param("onnx", marks=pytest.mark.slow)])
def test_exports_of_an_imported_run_translate_alike(
    to: str, folders: Folders, tmp_path: Path, command: Command
) -> None:
    pytest.importorskip({"ctranslate2": "ctranslate2", "onnx": "onnxruntime"}[to])
    done = command("export", run_of(folders("separate")), "--to", to, "--output", tmp_path / "out")
    assert done.code == 0, done.stderr
    assert "100 of 100 sentences are translated alike" in done.stderr


@pytest.mark.parametrize("name", ["opus", "separate", "untied", "languages", "start-is-end"])
def test_what_is_exported_and_loaded_and_saved_by_transformers_is_the_same_bits(
    name: str, folders: Folders, tmp_path: Path, command: Command
) -> None:
    folder = folders(name)
    done = command("export", run_of(folder), "--to", "hf", "--output", tmp_path / "out")
    assert done.code == 0, done.stderr
    model = transformers.MarianMTModel.from_pretrained(tmp_path / "out")
    original = transformers.MarianMTModel.from_pretrained(folder)
    assert model.config.is_encoder_decoder
    weights = original.state_dict()
    assert model.state_dict().keys() == weights.keys()
    assert all(torch.equal(tensor, weights[key]) for key, tensor in model.state_dict().items())
    ours, before = model.generation_config.to_diff_dict(), original.generation_config.to_diff_dict()
    assert all(ours[key] == value for key, value in before.items() if key not in ("transformers_version",))
    for file in ("source.spm", "target.spm"):
        assert (tmp_path / "out" / file).read_bytes() == (folder / file).read_bytes()
    model.save_pretrained(tmp_path / "again")
    transformers.MarianTokenizer.from_pretrained(tmp_path / "out").save_pretrained(tmp_path / "again")
    import_hf(tmp_path / "again", tmp_path / "run")
    file = Path("best", "model.safetensors")
    assert (tmp_path / "run" / file).read_bytes() == (run_of(folder) / file).read_bytes()


def test_our_own_model_of_that_architecture_is_exported(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    side = "{kind: transformer, layers: 1, size: 16, heads: 2, feed_forward: 16, activation: silu, norm: post, "
    side += "positions: sinusoidal_halves, attention_bias: true}"
    for name, count in (("train", 400), ("valid", 10)):
        for language in ("de", "en"):
            write_lines(f"{name}.{language}", lines(language, count, name))
    Path("own.yaml").write_text(f"""\
run: own
data:
  train: {{source: train.de, target: train.en}}
  valid: {{source: valid.de, target: valid.en}}
  subwords: {{size: 200}}
model: {{embedding: {{size: 16, tie: all}}, encoder: {side}, decoder: {side}}}
training: {{stopping: {{updates: 2}}, validation: {{every: 2, metric: loss, bleu: false}}}}
""")
    assert command("train", "own.yaml", "--device", "cpu", "--quiet").code == 0
    done = command("export", "own", "--to", "hf", "--output", "out")
    assert done.code == 0, done.stderr
    assert "- loss on the validation corpus: " in Path("out/README.md").read_text(encoding="utf-8")
    tokenizer, model = theirs(Path("out"))
    sources = lines("de", 10, "valid")
    x = tokenizer(sources, return_tensors="pt", padding=True)
    trained = load_trained("own", device="cpu", precision="float32", prepare=for_inference.body)
    trained.model.double()
    source_BS = padded([trained.tokenizers.source.encode(text) for text in sources])
    assert source_BS.equal(x.input_ids)
    with torch.no_grad():
        logits = model(**x, decoder_input_ids=torch.tensor([[2, 5, 7]] * 10)).logits
        memory = trained.model.encode(source_BS)
        readout = trained.model.teacher_forced(torch.tensor([[5, 7, 3]] * 10), memory).readout_BTR
        ours = trained.model.output(readout)
        possible_V = ours[0, 0].isfinite()  # padding and the like are left as trained in their format
        assert possible_V.sum() > 190
        assert (ours - logits)[..., possible_V].abs().max() < 1e-5
    for setting in ("norm=pre", "attention_bias=false", "positions=sinusoidal"):
        with pytest.raises(InputError, match=f"model.encoder.{setting.partition('=')[0]}: is"):
            marian.check(experiments.load(Path("own.yaml"), [f"model.encoder.{setting}"]))


def test_a_language_is_chosen_by_option_or_at_the_start_of_a_text(folders: Folders, command: Command) -> None:
    run = run_of(folders("languages"))
    translator = nmt.load(run, device="cpu").to(target_language="fra")
    trained = translator.trained
    fra, spa = trained.tokenizers.source.languages["fra"], trained.tokenizers.source.languages["spa"]
    plain = trained.tokenizers.source.encode("ein Hund")
    assert trained.prefixed([plain]) == [[fra, *plain]]
    own = trained.tokenizers.source.encode(">>spa<< ein Hund")
    assert trained.prefixed([own]) == [[spa, *plain]]
    encoded = trained.tokenizers.source.encode_words(">>spa<< ein Hund")
    assert encoded.words[encoded.word_of_piece[0]] == ">>spa<<"
    assert trained.tokenizers.source.encode_batch([">>spa<< ein Hund", "ein Hund"]) == [own, plain]
    missing = command("translate", run, "--device", "cpu", "--input", "x")
    assert (missing.code, "fra, spa, zh_Hant: choose one with --to LANGUAGE" in missing.stderr) == (2, True)


def _json(**changes: Any) -> Callable[[Path], None]:
    """Changes keys of a JSON file; None removes one."""

    def change(path: Path) -> None:
        tree = {**json.loads(path.read_text()), **changes}
        path.write_text(json.dumps({key: value for key, value in tree.items() if value is not None}))

    return change


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _vocabulary(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def changed(path: Path) -> None:
        ids = json.loads(path.read_text())
        path.write_text(json.dumps(change(ids) or ids))

    return changed


HOSTILE: list[tuple[str, Callable[[Path], Any], str]] = [
    ("config.json", Path.unlink, "config.json: no such file"),
    ("config.json", _cut, "is not valid"),
    ("config.json", lambda path: path.write_text("[" * 100_000), "is not valid"),
    ("config.json", lambda path: path.write_text("[]"), "no JSON object"),
    ("config.json", _json(model_type="bart"), "only marian can be converted"),
    ("config.json", _json(d_model="32"), 'd_model: expected a whole number from 1 to 1048576, found "32"'),
    ("config.json", _json(d_model=None), "d_model: expected a whole number"),
    ("config.json", _json(d_model=True), "d_model: expected a whole number"),
    ("config.json", _json(d_model=64), "config.json makes it"),
    ("config.json", _json(encoder_layers=-1), "encoder_layers: expected"),
    ("config.json", _json(encoder_layers=1000), "says 1000 encoder_layers"),
    ("config.json", _json(encoder_layers=1), "has model.encoder.layers.1."),
    ("config.json", _json(decoder_ffn_dim=1 << 20), "config.json makes it"),
    ("config.json", _json(decoder_ffn_dim=10**30), "decoder_ffn_dim: expected"),
    ("config.json", _json(encoder_attention_heads=5), "must divide d_model"),
    ("config.json", _json(activation_function="gelu_new"), '"gelu_new" cannot be converted'),
    ("config.json", _json(normalize_before=True), "normalize_before: true cannot be converted"),
    ("config.json", _json(scale_embedding=1), "scale_embedding: expected true or false"),
    ("config.json", _json(dropout=2), "dropout: expected a number"),
    ("config.json", _json(vocab_size=10, decoder_vocab_size=10), "vocab.json: has"),
    ("config.json", _json(decoder_vocab_size=10), "decoder_vocab_size: is 10"),
    ("config.json", _json(eos_token_id=7), "eos_token_id: is 7"),
    ("config.json", _json(decoder_start_token_id=10**6), "decoder_start_token_id: expected"),
    ("config.json", _json(max_position_embeddings=0), "max_position_embeddings: expected"),
    ("vocab.json", _vocabulary(lambda ids: ids.update({"▁a": 10**9})), "expected an id from 0"),
    ("vocab.json", _vocabulary(lambda ids: ids.update({"▁a": "4"})), "expected an id from 0"),
    ("vocab.json", _vocabulary(lambda ids: ids.update({"▁a": 5, "▁b": 5})), "the same id"),
    ("vocab.json", _vocabulary(lambda ids: ids.pop("<unk>") and None), "expected an id from 0"),
    ("vocab.json", _vocabulary(lambda ids: {f"{key}\ud800": value for key, value in ids.items()}), "is not text"),
    ("vocab.json", lambda path: path.write_text('{"a": 0, "a": 1}'), "stands there twice"),
    ("source.spm", _cut, "not a SentencePiece model, or damaged"),
    ("source.spm", lambda path: path.write_bytes(b""), "not a SentencePiece model, or damaged"),
    ("target.spm", Path.unlink, "target.spm: no such file"),
    ("generation_config.json", _json(num_beams=0), "num_beams: expected"),
    ("generation_config.json", _json(length_penalty=-1), "length_penalty: expected"),
    ("generation_config.json", _json(bad_words_ids=[[3]]), "bad_words_ids: [[3]] cannot be converted"),
    ("tokenizer_config.json", _json(separate_vocabs=True), "one of them is wrong"),
    ("tokenizer_config.json", _json(eos_token="<end>"), "which is the eos_token"),
    ("model.safetensors", _cut, "model.safetensors: cannot be read"),
    ("model.safetensors", lambda path: path.write_bytes(b"\xff" * 100), "model.safetensors: cannot be read"),
    ("model.safetensors", Path.unlink, "has neither model.safetensors nor pytorch_model.bin"),
]


@pytest.mark.parametrize(("file", "change", "message"), HOSTILE, ids=[f"{file}-{text}" for file, _, text in HOSTILE])
def test_a_damaged_or_hostile_folder_is_refused_in_one_line(
    file: str, change: Callable[[Path], Any], message: str, folders: Folders, tmp_path: Path
) -> None:
    folder = shutil.copytree(folders("relu"), tmp_path / "folder")
    change(folder / file)
    with pytest.raises(InputError) as refused:
        import_hf(folder, tmp_path / "run")
    assert message in str(refused.value)
    assert len(refused.value.messages) == 1
    assert "\n" not in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]


class Payload:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (Path.touch, (self.trace,))


@pytest.mark.parametrize("kind", ["code", "list", "cut", "text", "other tensors"])
def test_a_pickled_file_gives_tensors_or_is_refused(kind: str, folders: Folders, tmp_path: Path) -> None:
    folder = shutil.copytree(folders("pickled"), tmp_path / "folder")
    path, trace = folder / "pytorch_model.bin", tmp_path / "trace"
    things = {"code": {"model.shared.weight": Payload(trace)}, "list": [1], "other tensors": {"a": torch.ones(2)}}
    if kind in things:
        torch.save(things[kind], path)
    else:
        _cut(path) if kind == "cut" else path.write_text("no archive")
    with pytest.raises(InputError, match="pytorch_model.bin: "):
        import_hf(folder, tmp_path / "run")
    assert not trace.exists()
