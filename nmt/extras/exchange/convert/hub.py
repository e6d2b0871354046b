"""Models of the Hugging Face Hub, by the package huggingface_hub: its cache, its environment variables, its login."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.installation import missing
from nmt.extras.exchange.convert import marian

NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
"""Owner and name of a repository."""


def folder_of(source: Path) -> Path:
    """Returns the folder of a model: ``source`` itself, or that of OWNER/NAME of the Hub if no such path exists.
    Downloads files that are not in the cache yet. Raises InputError if that fails."""
    name = source.as_posix()
    if source.exists() or not NAME.fullmatch(name):
        return source
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError:
        raise missing(f"{name}: is not a folder here; to download models, huggingface_hub is", "hf") from None
    log.info(f"{name}: is not a folder here; downloading it with huggingface_hub")
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)  # the error below says the same
    if not log.shows_progress():
        disable_progress_bars()
    files = [marian.CONFIG, marian.GENERATION, marian.TOKENIZER, marian.VOCABULARY, marian.TARGET_VOCABULARY]
    files += [marian.SOURCE, marian.TARGET, marian.CARD]
    try:
        folder = Path(snapshot_download(name, allow_patterns=[*files, marian.WEIGHTS]))
        if not (folder / marian.WEIGHTS).exists():
            folder = Path(snapshot_download(name, allow_patterns=[*files, marian.PICKLED]))
    except (HTTPError, OSError, ValueError) as error:  # the others are huggingface_hub's own
        raise InputError(f"{name}: cannot be downloaded: {error}") from None
    return folder
