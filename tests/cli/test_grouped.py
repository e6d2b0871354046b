"""Options of every command: each is given once, and --quiet and --verbose."""

from __future__ import annotations

import contextlib

import pytest
import typer

from nmt.cli import app as cli
from nmt.core.errors import InputError
from tests.cli.conftest import Refusal


def test_an_option_is_given_once_unless_it_takes_a_list() -> None:
    checked = 0
    for name in cli.COMMANDS:
        command = cli.build_command(name)
        for option in command.params:
            if option.param_type_name != "option" or option.is_eager:
                continue
            value = [] if option.is_flag else ["1"] * option.nargs
            twice = [option.opts[-1], *value, option.opts[0], *value]
            context = command.context_class(command, info_name=name, resilient_parsing=False)
            if option.multiple:
                with contextlib.suppress(typer.TyperException, InputError):
                    command.parse_args(context, twice)
                continue
            with pytest.raises(typer.TyperException) as caught:
                command.parse_args(context, twice)
            message = f"{max(option.opts, key=len)} is given 2 times; give it once"
            assert caught.value.format_message() == message
            checked += 1
    assert checked > 150


def test_mistakes(refusal: Refusal) -> None:
    twice = "--input is given 2 times; give it once (see nmt translate --help)"
    assert refusal("translate -i a --input b") == twice
    assert refusal("translate --quiet -v") == "--quiet and --verbose contradict each other; give one of them"
