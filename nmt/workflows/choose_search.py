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

FIRST_SENTENCES = 50
"""Number of them whose translation shows how long all will take."""

SHARE_OF_TRAINING = 0.02
"""Share of the training's time that this may take."""


def choose_length_penalty(validation: Validation, seconds: float) -> tuple[float, str] | None:
    """Returns the length penalty with which the best checkpoint translates the valid corpus best, and what it gains; or
    None if the configuration sets one, if its search needs none, if the model has several target languages, or if this
    would take more than a share of ``seconds``, the duration of the training.

    The best is that with the highest sum of BLEU and chrF: chrF alone prefers translations that are too long.
    """
    experiment = validation.experiment
    search = experiment.search
    is_beam_search = search.beam > 1 and search.sampling is None and search.consensus is None
    if search.length_penalty is not None or not is_beam_search or len(experiment.data.target_languages) > 1:
        return None
    sources = validation.valid.source_texts()
    rows = list(range(0, len(sources), -(-len(sources) // MOST_SENTENCES)))
    started = time.monotonic()
    device, precision = str(validation.compute.device), validation.compute.precision
    trained = load_trained(experiment.folder, [f"search.n_best={search.beam}"], device=device, precision=precision)
    translator = Translator(trained, trained.experiment.search, torch_engine(trained, []))
    first = rows[:: -(-len(rows) // FIRST_SENTENCES)]
    loaded = time.monotonic()
    found = dict(zip(first, translator.candidates([sources[row] for row in first]), strict=True))
    per_sentence = (time.monotonic() - loaded) / len(first)
    if loaded - started + per_sentence * len(rows) > SHARE_OF_TRAINING * seconds:
        return None
    others = [row for row in rows if row not in found]
    found |= zip(others, translator.candidates([sources[row] for row in others]), strict=True)
    references = [validation.valid.text(row).target for row in rows]

    def measure(penalty: float) -> list[float]:
        ranking = ranking_of(search.model_copy(update={"length_penalty": penalty}))

        def rank(translation: Translation) -> float:
            return ranking.score(translation.log_prob, len(translation.tokens) + 1)

        best = [max(found[row], key=rank).text for row in rows]
        return [score.value for score in scores(best, references, metrics=("bleu", "chrf"))]

    measured = {penalty: measure(penalty) for penalty in PENALTIES}
    best = max(PENALTIES, key=lambda penalty: (sum(measured[penalty]), -abs(penalty - USUAL_PENALTY)))
    values = [f"BLEU {bleu:.1f} and chrF {chrf:.1f}" for bleu, chrf in (measured[best], measured[USUAL_PENALTY])]
    return best, f"{best:g}: {values[0]} on valid; with {USUAL_PENALTY:g}, {values[1]}"
