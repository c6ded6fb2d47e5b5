"""Where jax, an extra, is not installed, pytest leaves the modules that need it out."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).parent


def _needs_jax(path: Path) -> bool:
    try:
        import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts))
    except ModuleNotFoundError as error:
        return error.name == "jax"
    return False


collect_ignore = [
    str(path)
    for package in ("program", "verify")
    for path in (SOURCE / "slicewise" / package).glob("*.py")
    if find_spec("jax") is None and _needs_jax(path)
]
