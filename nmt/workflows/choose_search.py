"""The length penalty that translates the valid corpus best, chosen when training ends."""

from __future__ import annotations

import time
from collections.abc import Mapping

from nmt.evaluation.translation import scores
from nmt.search.config import USUAL_PENALTY
from nmt.search.engine import ranking_of
from nmt.training.validation import deciding_metric
from nmt.translator.loading import load_trained
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator, torch_engine
from nmt.translator.validation import Validation

PENALTIES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)

MOST_SENTENCES = 1000
"""Number of valid sentences that are translated, spread over the corpus."""

FIRST_SENTENCES = 50
"""Number of them whose translation shows how long all will take."""

SHARE_OF_TRAINING = 0.02
"""Share of the training's time that this may take."""


def choose_length_penalty(
    validation: Validation, figures: Mapping[str, float], seconds: float
) -> tuple[float, str] | None:
    """Returns the length penalty with which the metric of the validation is best for the valid corpus, and what it has
    gained; or None if the configuration sets one, if its search needs none, if its validations do not translate, if the
    model has several target languages, or if this would take more than a share of ``seconds``, the duration of the
    training. ``figures`` are those of the best validation, whose checkpoint translates.
    """
    experiment = validation.experiment
    search = experiment.search
    is_beam_search = search.beam > 1 and search.sampling is None and search.consensus is None
    is_free = search.length_penalty is None and is_beam_search and experiment.training.validation.bleu
    if not is_free or len(experiment.data.target_languages) > 1:
        return None
    sources = validation.valid.source_texts()
    rows = list(range(0, len(sources), -(-len(sources) // MOST_SENTENCES)))
    started = time.monotonic()
    device = str(validation.compute.device)
    trained = load_trained(experiment.folder, [f"search.n_best={search.beam}"], device=device)
    translator = Translator(trained, trained.experiment.search, torch_engine(trained, []))
    first = rows[:: -(-len(rows) // FIRST_SENTENCES)]
    loaded = time.monotonic()
    found = dict(zip(first, translator.candidates([sources[row] for row in first]), strict=True))
    per_sentence = (time.monotonic() - loaded) / len(first)
    if loaded - started + per_sentence * len(rows) > SHARE_OF_TRAINING * seconds:
        return None
    others = [row for row in rows if row not in found]
    found |= zip(others, translator.candidates([sources[row] for row in others]), strict=True)
    metric = deciding_metric(figures, experiment.training.validation.metric)
    metric = "chrf" if metric == "loss" else metric
    references = [validation.valid.text(row).target for row in rows]

    def score(penalty: float) -> float:
        ranking = ranking_of(search.model_copy(update={"length_penalty": penalty}))

        def rank(translation: Translation) -> float:
            return ranking.score(translation.log_prob, len(translation.tokens) + 1)

        best = [max(found[row], key=rank).text for row in rows]
        return scores(best, references, metrics=(metric,))[0].value

    by_penalty = {penalty: score(penalty) for penalty in PENALTIES}
    usual = by_penalty[USUAL_PENALTY]
    best = max(PENALTIES, key=lambda penalty: (by_penalty[penalty], -abs(penalty - USUAL_PENALTY)))
    return best, f"{best:g}, by {metric} on valid {by_penalty[best]:.2f}; {usual:.2f} with {USUAL_PENALTY:g}"
