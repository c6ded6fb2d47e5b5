"""Fetches the config of a Hugging Face repository that is not in the catalog, into the hub's own cache on this machine.

Needs `huggingface_hub`, an extra; nothing here runs for a model of the catalog or a file.
"""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

from slicewise.errors import InputError

CONFIG = "config.json"
BESIDE = ("hf_quant_config.json", "model.safetensors.index.json")
"""Small files that say more of how a checkpoint is stored; a repository may have none of them."""
_REPO = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")
_NOT_THERE = ("EntryNotFoundError", "RemoteEntryNotFoundError", "LocalEntryNotFoundError")


def is_repo(text: str) -> bool:
    """Whether a text may be the id of a repository: an owner, a slash and a name."""
    return bool(_REPO.fullmatch(text)) and not text.startswith((".", "/", "~"))


def fetch(repo: str) -> Path:
    """The config.json of a repository, with what lies beside it, fetched once and then read from the cache.

    Raises:
        InputError: huggingface_hub is not installed, or the repository, the file or the network cannot be reached.
    """
    try:
        from huggingface_hub import hf_hub_download, try_to_load_from_cache  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise InputError(
            f"{repo} is not in the catalog; `pip install 'slicewise[hub]'` fetches configs of Hugging Face, or give the"
            " path of its config.json"
        ) from None
    # The library warns of each of its retries; what comes of them is said once, below.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    if sys.stderr.isatty() and not isinstance(try_to_load_from_cache(repo, CONFIG), str):
        sys.stderr.write(f"Fetching the config of {repo} from Hugging Face; without a network this takes a while.\n")
    try:
        path = Path(hf_hub_download(repo, CONFIG))
    except Exception as error:  # the hub's errors, and those of whatever carries its requests
        raise InputError(f"{repo}: {_why(error)}; give the path of its config.json instead") from None
    for name in BESIDE:
        try:
            hf_hub_download(repo, name)
        except Exception as error:  # the same
            if type(error).__name__ not in _NOT_THERE:
                raise InputError(f"{repo}: {name}: {_why(error)}; try again, or give the folder of the model") from None
    return path


def _why(error: Exception) -> str:
    """What went wrong, in one line without the library's advice."""
    known = {
        "RepositoryNotFoundError": "no such repository on Hugging Face, or it is private",
        "GatedRepoError": "the repository is gated: accept its terms, and log in with `hf auth login`",
        "EntryNotFoundError": "the repository has no config.json",
        "RemoteEntryNotFoundError": "the repository has no config.json",
        "LocalEntryNotFoundError": "it cannot be fetched: no network, and not in the cache",
        "OfflineModeIsEnabled": "it cannot be fetched: offline mode is on, and it is not in the cache",
        "HFValidationError": "not an id of a Hugging Face repository",
    }
    first = str(error).strip().split("\n")[0][:160].rstrip(". ") or "no answer"
    return known.get(type(error).__name__, f"it cannot be fetched ({type(error).__name__}: {first})")
