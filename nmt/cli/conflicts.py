"""Rules for options that exclude or need each other: the rows of a command's table, and their check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from nmt.core.errors import InputError

NAMES = {
    "model": "MODEL", "links": "LINKS", "views": "--view", "metrics": "--metric", "earlier": "--continue",
    "overrides": "--set", "changes": "--set and search options",
}  # fmt: skip
"""Names on the command line that differ from those of the fields."""


@dataclass(frozen=True)
class Rule:
    """Relates ``options`` to ``others``: fields of a command's dataclass, with spaces between. ``format_=png/svg``
    means one of these values, ``method!=attention`` any other value. The rule is active if one of ``options`` is given,
    and one of ``where``; if one of these is empty, it does not count. ``sentence`` may contain any field in braces, the
    first of the given ``options`` as ``{option}``, and the given ones of ``others`` as ``{others}``."""

    options: str
    others: str
    sentence: str
    where: str = ""
    needs_others: ClassVar[bool]
    """True if one of ``others`` must be given, and False if none may be."""

    def check(self, values: Any) -> None:
        """Raises InputError if the options of a command break the rule."""
        options, others = given_options(values, self.options), given_options(values, self.others)
        is_active = (options or not self.options) and (not self.where or given_options(values, self.where))
        if is_active and bool(others) != self.needs_others:
            raise InputError(
                self.sentence.format(option=options[0] if options else "", others=", ".join(others), **vars(values))
            )


class Needs(Rule):
    """A rule that one of the others must be given as well."""

    needs_others = True


class Excludes(Rule):
    """A rule that none of the others may be given."""

    needs_others = False


def given_options(values: Any, conditions: str) -> list[str]:
    """Lists the command-line names of the options that differ from their defaults and fulfil their conditions."""
    found = []
    for condition in conditions.split():
        name, equals, choices = condition.partition("=")
        is_other = name.endswith("!")
        name = name.rstrip("!")
        value = getattr(values, name, None)  # an option of a plug-in may be missing
        if value in (getattr(type(values), name, None), []) or (equals and (value in choices.split("/")) == is_other):
            continue
        found.append(NAMES.get(name, "--" + name.rstrip("_").replace("_", "-")))
    return found
