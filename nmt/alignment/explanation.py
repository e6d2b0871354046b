"""Sentences for users about the rules that extract links from a soft alignment."""

from __future__ import annotations

from nmt.alignment.extract import Argmax, Extraction, Grow, Mutual, Share, Threshold


def explanation(rule: Extraction, heads: int = 1) -> str:
    """Describes the rule in a sentence and, if the weights are the mean of several heads, their number."""
    return _of_rule(rule) + (f" The weights are the mean of {heads} heads." if heads > 1 else "")


def _of_rule(rule: Extraction) -> str:
    at_least = f", if it is at least {rule.threshold:.0%}" if rule.threshold else ""
    both = f"Linked: the strongest weight of a row and of a column{at_least}"
    match rule:
        case Argmax():
            return f"Linked: the strongest weight of each target word{at_least}."
        case Share():
            return f"Linked: of each target word, the weights from {rule.share:.0%} of its strongest one{at_least}."
        case Threshold():
            return f"Linked: every weight of at least {rule.threshold:.0%}."
        case Mutual():
            return f"{both}."
        case Grow():
            return f"{both}, then the strongest of either, beside a link or between words that have none."
