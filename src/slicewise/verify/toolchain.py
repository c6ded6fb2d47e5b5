"""Which compiler is here: XLA:TPU where libtpu is installed, XLA:CPU where only jax is."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata

from slicewise.errors import InputError

QUIET = {
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_MIN_LOG_LEVEL": "3",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
"""No metadata server is asked for a TPU, others may load its compiler, too, and it says little; unless the user set it
otherwise."""

EXTRA = "pip install 'slicewise[verify]'"
_DEVICES = "--xla_force_host_platform_device_count"


@dataclass(frozen=True, slots=True)
class Compiler:
    """The compiler that a program is given to.

    Attributes:
        platform: tpu or cpu.
        versions: its name, with the versions of jax and libtpu.
        why_not_tpu: why it is not the TPU's; "" where it is, or where the CPU's was asked for.
        environment: variables of the process that it runs in, beside those that are set here.
    """

    platform: str
    versions: str
    why_not_tpu: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


def find_compiler(asked: str | None, n_devices: int) -> Compiler:
    """The compiler to use.

    Args:
        asked: tpu or cpu; None for the TPU's where it can be had.
        n_devices: devices that a program for the CPU is cut over.

    Raises:
        InputError: jax is not installed, or the TPU's compiler was asked for and is not here.
    """
    jax_version = _version("jax")
    if jax_version is None:
        raise InputError(f"verify needs jax, and it is not installed: {EXTRA}")
    if asked not in (None, "tpu", "cpu"):
        raise InputError(f"--compiler '{asked}' is not offered; choose tpu, cpu")
    why_not = "" if asked == "cpu" else _why_not_tpu()
    if asked == "tpu" and why_not:
        raise InputError(f"--compiler tpu: {why_not}; leave --compiler out to compare with the CPU's compiler")
    # Nothing runs on a TPU or a GPU, not even where there is one.
    environment = {name: value for name, value in QUIET.items() if name not in os.environ} | {"JAX_PLATFORMS": "cpu"}
    if asked == "cpu" or why_not:
        devices = "one virtual device" if n_devices == 1 else f"{n_devices} virtual devices"
        flags = re.sub(rf"{_DEVICES}=\S*", "", os.environ.get("XLA_FLAGS", ""))
        environment["XLA_FLAGS"] = f"{flags} {_DEVICES}={n_devices}".strip()
        return Compiler("cpu", f"XLA:CPU of jax {jax_version}, {devices}", why_not, environment)
    return Compiler("tpu", f"XLA:TPU of libtpu {_version('libtpu')}, jax {jax_version}", "", environment)


def _why_not_tpu() -> str:
    system, machine = platform.system(), platform.machine()
    if system != "Linux" or machine not in ("x86_64", "AMD64"):
        return f"libtpu, the TPU's compiler, exists for x86-64 Linux only, and this is {system} on {machine}"
    if _version("libtpu") is None:
        return f"libtpu, the TPU's compiler, is not installed: {EXTRA}"
    return ""


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
