"""Sentences for people about the rules that make links of a soft alignment."""

from __future__ import annotations

from nmt.alignment.extract import Argmax, Extraction, Grow, Mutual, Share, Threshold


def explanation(rule: Extraction, heads: int = 1) -> str:
    """The rule in a sentence, and the number of heads whose mean the weights are, where it is not one."""
    return _of_rule(rule) + (f" The weights are the mean of {heads} heads." if heads > 1 else "")


def _of_rule(rule: Extraction) -> str:
    at_least = f", provided that this is at least {rule.threshold:.0%}" if rule.threshold else ""
    both = "A weight is a link that is the highest of its row and of its column"
    match rule:
        case Argmax():
            return f"Each target word is linked with its highest weight{at_least}."
        case Share():
            highest = f"every weight of at least {rule.share:.0%} of its highest one"
            return f"Each target word is linked with {highest}{at_least}."
        case Threshold():
            return f"Every weight of at least {rule.threshold:.0%} is a link."
        case Mutual():
            return f"{both}{at_least}."
        case Grow():
            return f"{both}, or of one of them beside a link or between words without one{at_least}."
