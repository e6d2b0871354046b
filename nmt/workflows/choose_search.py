"""The length penalty that translates the valid corpus best, chosen when training ends."""

from __future__ import annotations

import time

from nmt.evaluation.translation import scores
from nmt.search.config import USUAL_PENALTY
from nmt.search.scoring import ranking_of
from nmt.translator.loading import load_trained
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator, torch_engine
from nmt.translator.validation import Validation

PENALTIES = (0.5, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5)

MOST_SENTENCES = 1000
"""Number of valid sentences that are translated, spread over the corpus."""

PARTS = 4
"""Number of parts of them, of which one is translated after the other as long as there is time."""

LEAST_GAIN = 0.2
"""Gain in BLEU and chrF together below which the usual penalty is kept."""

SHORTEST = 50.0
"""Duration of a training, in seconds, below which nothing is chosen."""

SHARE_OF_TRAINING = 0.02
"""Share of the training's time that this may take."""


def choose_length_penalty(validation: Validation, seconds: float) -> tuple[float, str] | None:
    """Returns the length penalty with which the best checkpoint translates the valid corpus best, and what it gains; or
    None if the configuration sets one, if its search needs none, if the model has several target languages, or if
    ``seconds``, the duration of the training, are few.

    The best is that with the highest sum of BLEU and chrF: chrF alone prefers translations that are too long.
    """
    experiment = validation.experiment
    search = experiment.search
    is_beam_search = search.beam > 1 and search.sampling is None and search.consensus is None
    is_free = search.length_penalty is None and is_beam_search and seconds >= SHORTEST
    if not is_free or len(experiment.data.target_languages) > 1:
        return None
    sources = validation.valid.source_texts()
    rows = list(range(0, len(sources), -(-len(sources) // MOST_SENTENCES)))
    started = time.monotonic()
    device, precision = str(validation.compute.device), validation.compute.precision
    once = [f"search.n_best={search.beam}", "search.repetition_margin=null", "search.numbers=false"]
    trained = load_trained(experiment.folder, once, device=device, precision=precision)
    translator = Translator(trained, trained.experiment.search, torch_engine(trained, []))
    found: dict[int, tuple[Translation, ...]] = {}
    for number in range(PARTS):
        # the time of all parts so far and, if it is not the first, of one more
        if number and (time.monotonic() - started) * (number + 1) / number > SHARE_OF_TRAINING * seconds:
            break
        part = rows[number::PARTS]
        found |= zip(part, translator.candidates([sources[row] for row in part]), strict=True)
    rows = sorted(found)
    references = [validation.valid.text(row).target for row in rows]

    def measure(penalty: float) -> list[float]:
        ranking = ranking_of(search.model_copy(update={"length_penalty": penalty}))

        def rank(translation: Translation) -> float:
            return ranking.score(translation.log_prob, len(translation.tokens) + 1)

        best = [max(found[row], key=rank).text for row in rows]
        return [score.value for score in scores(best, references, metrics=("bleu", "chrf"))]

    measured = {penalty: measure(penalty) for penalty in PENALTIES}
    best = max(PENALTIES, key=lambda penalty: sum(measured[penalty]) + LEAST_GAIN * (penalty == USUAL_PENALTY))
    texts = ["BLEU {:.1f} and chrF {:.1f}".format(*measured[penalty]) for penalty in (best, USUAL_PENALTY)]
    return best, f"{best:g}: {texts[0]} on valid" + f"; with {USUAL_PENALTY:g}, {texts[1]}" * (best != USUAL_PENALTY)
