"""Which compiler is here: XLA:TPU where libtpu is installed, XLA:CPU where only jax is."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from importlib import metadata

from slicewise.errors import InputError

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_MIN_LOG_LEVEL": "3",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
"""Nothing runs on a TPU: its compiler is loaded, no metadata server is asked, and others may load it, too."""

EXTRA = "pip install 'slicewise[verify]'"


@dataclass(frozen=True, slots=True)
class Compiler:
    """The compiler that a program is given to.

    Attributes:
        platform: tpu or cpu.
        versions: its name, with the versions of jax and libtpu.
        why_not_tpu: why it is not the TPU's; "" where it is, or where the CPU's was asked for.
    """

    platform: str
    versions: str
    why_not_tpu: str = ""


def find_compiler(asked: str | None, n_devices: int) -> Compiler:
    """The compiler to use, with jax made ready for it.

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
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if asked == "cpu" or why_not:
        _virtual_devices(n_devices)
        devices = "one virtual device" if n_devices == 1 else f"{n_devices} virtual devices"
        return Compiler("cpu", f"XLA:CPU of jax {jax_version}, {devices}", why_not)
    return Compiler("tpu", f"XLA:TPU of libtpu {_version('libtpu')}, jax {jax_version}")


def _why_not_tpu() -> str:
    system, machine = platform.system(), platform.machine()
    if system != "Linux" or machine not in ("x86_64", "AMD64"):
        return f"libtpu, the TPU's compiler, exists for x86-64 Linux only, and this is {system} on {machine}"
    if _version("libtpu") is None:
        return f"libtpu, the TPU's compiler, is not installed: {EXTRA}"
    return ""


def _virtual_devices(n_devices: int) -> None:
    """Ask for so many CPU devices, as long as jax has not started."""
    flag = f"--xla_force_host_platform_device_count={n_devices}"
    if "jax" not in sys.modules and "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
