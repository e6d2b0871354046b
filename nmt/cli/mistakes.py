"""Messages for mistakes on the command line: Typer's errors in the terms of nmt, with what to type instead."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nmt.core.errors import InputError

OTHER_NAMES = {
    "lr": "learning_rate", "batch_size": "batch_tokens", "max_epochs": "epochs", "num_train_epochs": "epochs",
    "max_steps": "updates", "max_updates": "updates", "train_steps": "updates", "warmup_steps": "warmup",
}  # fmt: skip
"""Names that other toolkits have for keys of the configuration."""

COMMANDS = {
    "init": "new create start demo quickstart", "init NAME --from RUN FILE FILE": "finetune fine-tune adapt",
    "prepare": "preprocess build-vocab tokenize binarize", "train": "fit resume learn",
    "translate": "generate decode interactive infer predict", "evaluate": "test eval bleu sacrebleu validate",
    "align": "fast-align eflomal alignment attention heatmap", "serve": "server api web", "filter": "clean",
    "links": "atools symal symmetrize",
    "info": "show list ls models runs status", "config --explain KEY": "explain", "--version": "version",
}  # fmt: skip
"""Commands, and the names that others have for them."""

OPTIONS = {
    "MODEL": "model models model-name-or-path model-path model-dir path checkpoint checkpoints ckpt run config m",
    "CONFIG": "config cfg yaml c data prepared-data",
    "--input": "src source source-file src-file input-file file text s",
    "--source": "src source-file src-file train-source train-src", "--target": "tgt trg target-file tgt-file",
    "--reference": "ref refs references tgt trg target", "--hypothesis": "hyp hypo hypotheses sys system predictions",
    "--tsv": "pairs corpus bitext parallel input i", "--valid-source": "valid-src dev-source validation-source",
    "--valid-target": "valid-tgt dev-target validation-target", "--valid-tsv": "valid dev", "--test-tsv": "test",
    "--output": "out output-file output-path output-dir save-dir save-model", "--beam": "beam-size num-beams beams b",
    "--n-best": "nbest nbest-size num-return-sequences", "--length-penalty": "lenpen alpha",
    "--max-length-ratio X": "max-length max-len max-len-a max-len-b max-output-length max-new-tokens",
    "--batch-tokens N": "batch-size max-tokens", "--sample": "sampling do-sample random-sampling",
    "--top-k": "topk sampling-topk random-sampling-topk", "--top-p": "topp sampling-topp random-sampling-topp nucleus",
    "--processes N": "world-size gpu-ranks num-gpus nproc-per-node", "--device cpu": "cpu use-cpu no-cuda",
    "--device cuda": "gpu gpus cuda use-gpu use-cuda device-id device-ids",
    "--precision float16": "fp16 half amp", "--precision bfloat16": "bf16",
    "--to": "target-lang tgt-lang trg-lang target-language lang language format engine type",
    "--expected A,B": "languages langs source-lang target-lang l1 l2",
    "--min-probability": "confidence min-confidence probability",
    "--format jsonl": "confidence scores print-scores probabilities json", "--format": "output-type type",
    "--alignment": "alignments print-alignment report-align", "--gold": "gold-links gold-alignment reference",
    "--glossary": "terms terminology lexicon", "--replace-unknown": "replace-unk replace-unks",
    "--workers": "threads num-threads jobs num-workers j",
}  # fmt: skip
"""Arguments and options, and the names that OpenNMT, fairseq, Sockeye, JoeyNMT, fast_align, sacreBLEU and Hugging Face
have for them. The first one that a command has is suggested."""

VALUES = {"fp16": "float16", "half": "float16", "bf16": "bfloat16", "fp32": "float32", "json": "jsonl", "marian": "hf"}
"""Values of options, by the names that other toolkits have for them."""

_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", flags=re.DOTALL)


def describe(error: Any, context: Any, arguments: Sequence[str], commands: Collection[str]) -> str:
    """Formats the message for a TyperException, with what to type instead, or the help page."""
    where, parameters = context.command_path, context.command.get_params(context)
    message = error.format_message().replace("Value error, ", "").rstrip(".")
    extra = _EXTRA.fullmatch(message)
    before, choice, choices = message.rpartition("' is not one of ")
    parameter: Any = getattr(error, "param", None)
    name = max(parameter.opts, key=len) if parameter else str(getattr(error, "option_name", ""))
    fault = error.__cause__.errors()[0] if isinstance(error.__cause__, ValidationError) else None
    usage = f"{where} {' '.join(context.command.collect_usage_pieces(context)[1:])}"
    if fault and fault["type"] != "value_error":
        from nmt.config.errors import expected

        message = f"{name}: expected {expected(fault)}, found {fault['input']}"
    elif extra and where == "nmt translate":
        return _text_on_stdin(extra[1], f" {shlex.quote(context.params['model'])}")
    elif extra or message.endswith("does not take a value"):
        message = _surplus(extra[1] if extra else "", parameters, arguments, usage)
    elif choice:
        known, value = choices.replace("'", ""), before.partition(": '")[2]
        meant = VALUES.get(value.lower())
        message = f"{name} {value}: use {meant if meant in known.split(', ') else f'one of {known}'}"
    elif message.startswith("Missing argument"):
        message = f"{parameter.metavar} is missing: {usage}"
    elif message.endswith("requires an argument"):
        metavar = next(each.metavar for each in parameters if name in each.opts)
        message = f"{name} needs a value: {name} {metavar}"
    elif message.startswith("No such command"):
        message = _other_command(arguments[0], commands)
    elif hasattr(error, "possibilities"):
        message = other_option(name, parameters, arguments, where)
    return f"{message} (see {where} --help)"


def _surplus(extra: str, parameters: Sequence[Any], arguments: Sequence[str], usage: str) -> str:
    """Formats the message for an extra argument or value of a flag."""
    flags = {name for of in parameters if getattr(of, "is_flag", False) for name in [*of.opts, *of.secondary_opts]}
    for flag, value in pairwise(word for argument in arguments for word in argument.split("=", 1)):
        if flag == "--extend" and value.isdecimal():
            return f"{flag} takes no value; the number of updates is --set training.stopping.updates={value}"
        if flag in flags and re.fullmatch(r"\d+|true|false|yes|no|on|off", value.lower()):
            return f"{flag} takes no value; leave out {value}"
    if "CONFIG" in usage and not re.search(r"\.ya?ml\b", " ".join(arguments)):
        return f"CONFIG is a YAML file, which nmt init NAME FILE FILE writes for two files of text; not {extra}"
    for option in parameters:
        if extra in map(str, option.type_descriptor.choices or ()):
            return f"{extra}: is the value of an option: {option.opts[0]} {extra}"
    return f"{extra}: an argument too many: {usage}"


def _other_command(name: str, commands: Collection[str]) -> str:
    """Formats the message for a command that does not exist."""
    ours = [f"; use nmt {own}" for own, theirs in COMMANDS.items() if name.lower().replace("_", "-") in theirs.split()]
    ours += [f"; did you mean {own}?" for own in get_close_matches(name, commands)]
    return f"{name}: no such command" + "".join(ours[:1])


def other_name(option: str, names: Collection[str]) -> str | None:
    """Finds the one of our ``names`` that corresponds to an option of another toolkit, such as ``-src`` or
    ``--beam_size``."""
    bare = option.lstrip("-").partition("=")[0].replace("_", "-").lower()
    theirs = {
        ours: f"{ours[2:]} {others}".split() for ours, others in [*((name, "") for name in names), *OPTIONS.items()]
    }
    return next((ours for ours, others in theirs.items() if bare in others and ours.split()[0] in names), None)


def refuse_single_dash(options: Iterable[str], parameters: Sequence[Any], arguments: Sequence[str], where: str) -> None:
    """Raises InputError for a long option with one dash that is an option of nmt or of another toolkit."""
    for option in options:
        if other_name(option, [name for each in parameters for name in each.opts]):
            raise InputError(other_option(option, parameters, arguments, where))


def other_option(option: str, parameters: Sequence[Any], arguments: Sequence[str], where: str) -> str:
    """Formats the message for an option that does not exist."""
    given = next((each for each in arguments if each.startswith(option)), option)  # -src, of which -s is the option
    _, equals, value = given.partition("=")
    option = given.removesuffix(equals + value)
    value = shlex.quote(value or next(iter(arguments[[*arguments, given].index(given) + 1 :]), "…"))
    names = {name: each for each in parameters for name in [*each.opts, each.metavar] if name}
    if (ours := other_name(option, names)) in ("MODEL", "CONFIG"):
        return f"{option}: {ours} is an argument and not an option: {where} {value}"
    if ours is not None:
        takes_value = " " not in ours and not getattr(names[ours], "is_flag", False)
        return f"{option}: no such option; use {ours}" + (f" {value}" if takes_value else "")
    if "--set" in names and (keys := _keys(option)):
        settings = " or ".join(f"--set {key}={value}" for key in keys[:3])
        return f"{option}: no such option; a key of the configuration is set with {settings}"
    close = get_close_matches(option, names, 1, 0.7)
    return f"{option}: no such option" + "".join(f"; did you mean {name}?" for name in close)


def refuse_text(model: str) -> None:
    """Raises InputError if the MODEL of `nmt translate` is a text or a text file."""
    path = Path(model).expanduser()
    if path.suffix not in (".yaml", ".yml", ".zip") and (path.is_file() or not path.exists()):
        raise InputError(f"{model}: no such run directory, checkpoint or config; {_text_on_stdin(model, '')}")


def _text_on_stdin(text: str, model: str) -> str:
    """Returns the command for a text, or the name of a file, that was given to `nmt translate` as an argument."""
    if Path(text).expanduser().is_file():
        return f"to translate a file: nmt translate{model} --input {shlex.quote(text)}"
    return f"to translate a text: echo {shlex.quote(text)} | nmt translate{model}"


def _keys(option: str) -> list[str]:
    """Finds the keys of a configuration that an unknown option may mean."""
    from nmt.config.help import keys
    from nmt.experiment import Experiment

    name = option.lstrip("-").replace("-", "_")
    return [key for key in keys(Experiment) if key.rpartition(".")[2] == OTHER_NAMES.get(name, name)]
