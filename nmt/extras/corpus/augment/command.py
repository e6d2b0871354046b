"""`nmt augment`."""

from __future__ import annotations

from nmt.cli.conflicts import Needs
from nmt.cli.options import with_options
from nmt.core.errors import InputError
from nmt.core.memory import gc_paused
from nmt.extras.corpus.augment.options import AugmentOptions

CONFLICTS = (
    Needs("back_translation copies", "target_text", "{option}: needs --target-text"),
    Needs("keep_by", "keep", "--keep-by: needs --keep, the share to keep"),
    Needs("back_translation=none", "copies source_text diversify",
        "--back-translation none: leaves nothing to make; add --copies, --source-text or --diversify"),
)  # fmt: skip


@with_options(AugmentOptions, CONFLICTS)
def augment(options: AugmentOptions) -> None:
    """Make more training pairs from text of one language, or from existing pairs.

    Models of both directions translate the text; missing models are trained. The new pairs, and a configuration that
    also uses them, are written to one folder. Ctrl-C stops, and the same command continues."""
    makes_other = options.source_text or options.diversify
    if not (options.target_text or makes_other):
        raise InputError("there is nothing to make pairs of; give --target-text, --source-text or --diversify")
    if options.back_translation == "sampling" and options.beam is not None and not makes_other:
        raise InputError("--beam: --back-translation sampling draws and has no beam; leave one out")
    from nmt import experiment

    settings = experiment.load(options.config, options.overrides or [], with_corpora=True)
    if options.ray is not None:
        from nmt.extras.cluster.cluster import check_installed

        check_installed()
    with gc_paused():
        from nmt.extras.corpus.augment import augment as workflow

    workflow.augment(settings, options)
