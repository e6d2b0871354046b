"""Reads the shortlist of a trained model."""

from __future__ import annotations

import safetensors

from nmt.core.errors import InputError
from nmt.core.files import refuse_special
from nmt.search.shortlist import Shortlist
from nmt.translator.find_run import SHORTLIST, run_of
from nmt.translator.loading import TrainedModel


def read_shortlist(trained: TrainedModel) -> Shortlist:
    """The shortlist of a model's run. Raises InputError where there is none, or none for its vocabulary."""
    path = run_of(trained.checkpoint) / SHORTLIST
    remedy = f"make it with: nmt shortlist {run_of(trained.checkpoint)}"
    refuse_special(path)
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            vocabulary = (file.metadata() or {}).get("vocabulary")
            always_A, offsets_X1, targets_T = (file.get_tensor(name) for name in ("always", "offsets", "targets"))
    except FileNotFoundError:
        raise InputError(f"search.shortlist: {path} is not there; {remedy}") from None
    except (safetensors.SafetensorError, OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: is damaged ({' '.join(str(error).split())}); {remedy}") from None
    if vocabulary != trained.tokenizers.fingerprint:
        raise InputError(f"{path}: is for another vocabulary than the model's; {remedy}")
    shortlist = Shortlist(trained.tokenizers.target.size, always_A, offsets_X1, targets_T)
    if not shortlist.fits(trained.tokenizers.source.size):
        raise InputError(f"{path}: is damaged (numbers that are no subwords); {remedy}")
    return shortlist
