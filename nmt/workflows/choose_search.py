"""The length penalty that translates the valid corpus best, chosen when training ends."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from nmt.evaluation.translation import scores
from nmt.search.config import USUAL_PENALTY
from nmt.translator.loading import load_trained
from nmt.translator.translator import Translator, torch_engine
from nmt.translator.validation import Validation

LARGER, SMALLER = (1.5, 2.0, 2.25, 2.5), (0.5,)
"""The penalties that are tried: larger ones, until one is not taken, and else a smaller one."""

MOST_SENTENCES, LEAST_SENTENCES = 1000, 100
"""Numbers of valid sentences that are translated, spread over the corpus: at most, and at least."""

SEARCHES = 4
"""Usual number of penalties that are tried."""

LEAST_GAIN = 0.2
"""Gain in BLEU and chrF together from which on another penalty is better, and most that one of them may lose."""

FAR, LEAST_LONGER, MOST_LOSS = 0.05, 0.01, 0.5
"""Share by which translations are so much shorter than the references that they have dropped something; by how much
others must then be longer at least, and what BLEU and chrF may lose each in their favour."""

SHORTEST = 50.0
"""Duration of a training, in seconds, below which nothing is chosen."""

SHARE_OF_TRAINING = 0.02
"""Share of the training's time that this may take."""


def choose_length_penalty(validation: Validation, seconds: float) -> tuple[float, str] | None:
    """Returns the length penalty with which the best checkpoint translates the valid corpus best, and what it gains; or
    None if the configuration sets one, if its search needs none, if the model has several target languages, or if
    ``seconds``, the duration of the training, are few.

    A penalty is better if the sum of BLEU and chrF is higher and neither of them lower: chrF alone prefers
    translations that are too long. Of penalties whose scores differ by no more than chance, that one is taken with
    which the translations are nearer in length to the references: shorter ones have dropped something. While they are
    much too short, one that makes them longer may lose a little more. Each penalty has a search of its own. To rank the
    hypotheses of one search anew is not enough: they are those that suit its penalty, so that translations come out
    much longer with a larger one than they seem to.
    """
    experiment = validation.experiment
    search = experiment.search
    is_beam_search = search.beam > 1 and search.sampling is None and search.consensus is None
    is_free = search.length_penalty is None and is_beam_search and seconds >= SHORTEST
    if not is_free or len(experiment.data.target_languages) > 1:
        return None
    device, precision = str(validation.compute.device), validation.compute.precision
    once = ["search.n_best=1", "search.numbers=false"]
    trained = load_trained(experiment.folder, once, device=device, precision=precision)
    translator = Translator(trained, trained.experiment.search, torch_engine(trained, []))
    sources = validation.valid.source_texts()
    rows = list(range(0, len(sources), -(-len(sources) // LEAST_SENTENCES)))

    @cache
    def measure(penalty: float) -> tuple[list[float], float]:
        """Returns BLEU and chrF, and by which share the translations are longer than the references, or below 0
        shorter."""
        changed = translator.search.model_copy(update={"length_penalty": penalty})
        found = replace(translator, search=changed).translate([sources[row] for row in rows])
        texts, references = [each.text for each in found], [validation.valid.text(row).target for row in rows]
        values = [score.value for score in scores(texts, references, metrics=("bleu", "chrf"))]
        return values, len("".join(texts)) / len("".join(references)) - 1.0

    def climb(penalties: Iterable[float]) -> float:
        best = USUAL_PENALTY
        highest, error = measure(best)
        for penalty in penalties:
            values, new_error = measure(penalty)
            gains = [new - old for new, old in zip(values, highest, strict=True)]
            most_loss = MOST_LOSS if error < -FAR and error + LEAST_LONGER <= new_error <= 0.0 else LEAST_GAIN
            if min(gains) < -most_loss or (sum(gains) < LEAST_GAIN and abs(new_error) >= abs(error)):
                break
            # the next one is held to the highest scores so far, so that small losses do not add up
            best, highest, error = penalty, list(map(max, values, highest)), new_error
        return best

    started = time.monotonic()
    measure(USUAL_PENALTY)
    left = SHARE_OF_TRAINING * seconds / (time.monotonic() - started)
    count = max(LEAST_SENTENCES, min(MOST_SENTENCES, int(len(rows) * left / SEARCHES)))
    rows = list(range(0, len(sources), -(-len(sources) // count)))
    measure.cache_clear()
    best = climb(LARGER)
    best = best if best != USUAL_PENALTY else climb(SMALLER)
    texts = ["BLEU {:.1f} and chrF {:.1f}".format(*measure(penalty)[0]) for penalty in (best, USUAL_PENALTY)]
    return best, f"{best:g}: {texts[0]} on valid" + f"; with {USUAL_PENALTY:g}, {texts[1]}" * (best != USUAL_PENALTY)
