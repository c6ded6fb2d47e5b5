"""Which compiler is taken, and what is said where there is none."""

import os
from collections.abc import Callable

import pytest

from slicewise.errors import InputError
from slicewise.verify import toolchain
from slicewise.verify.toolchain import QUIET, find_compiler

BOTH = {"jax": "0.10.2", "libtpu": "0.0.42.1"}
Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Makes a machine: what is installed, what it is, and an environment that no other test sees."""

    def make(installed: dict[str, str], system: str = "Linux", cpu: str = "x86_64", **environment: str) -> None:
        monkeypatch.setattr(toolchain, "_version", installed.get)
        monkeypatch.setattr(toolchain.platform, "system", lambda: system)
        monkeypatch.setattr(toolchain.platform, "machine", lambda: cpu)
        monkeypatch.setattr(os, "environ", environment)

    return make


def test_the_tpus_compiler_is_taken_where_libtpu_is(machine: Machine) -> None:
    machine(BOTH)
    for asked in (None, "tpu"):
        found = find_compiler(asked, 8)
        assert (found.platform, found.why_not_tpu) == ("tpu", "")
        assert found.versions == "XLA:TPU of libtpu 0.0.42.1, jax 0.10.2"


def test_the_cpus_compiler_is_taken_when_asked_for(machine: Machine) -> None:
    machine(BOTH)
    found = find_compiler("cpu", 8)
    assert (found.platform, found.why_not_tpu) == ("cpu", "")
    assert found.versions == "XLA:CPU of jax 0.10.2, 8 virtual devices"


def test_without_jax_the_extra_is_named(machine: Machine) -> None:
    machine({"libtpu": "0.0.42.1"})
    for asked in (None, "tpu", "cpu"):
        with pytest.raises(InputError, match=r"needs jax, .* pip install 'slicewise\[verify\]'$"):
            find_compiler(asked, 8)


def test_without_libtpu_the_cpus_compiler_is_taken_and_the_extra_is_named(machine: Machine) -> None:
    machine({"jax": "0.10.2"})
    found = find_compiler(None, 8)
    assert found.platform == "cpu"
    assert found.why_not_tpu.endswith("is not installed: pip install 'slicewise[verify]'")
    with pytest.raises(
        InputError, match=r"^--compiler tpu: .* pip install 'slicewise\[verify\]'; leave --compiler out"
    ):
        find_compiler("tpu", 8)


@pytest.mark.parametrize(("system", "cpu"), [("Darwin", "arm64"), ("Linux", "aarch64"), ("Windows", "AMD64")])
def test_elsewhere_there_is_no_libtpu(machine: Machine, system: str, cpu: str) -> None:
    machine(BOTH, system, cpu)
    found = find_compiler(None, 8)
    assert found.platform == "cpu"
    assert found.why_not_tpu.endswith(f"exists for x86-64 Linux only, and this is {system} on {cpu}")
    assert find_compiler("cpu", 8).why_not_tpu == ""
    with pytest.raises(InputError, match=f"exists for x86-64 Linux only, and this is {system} on {cpu}; leave"):
        find_compiler("tpu", 8)


def test_an_unknown_compiler_is_refused(machine: Machine) -> None:
    machine(BOTH)
    with pytest.raises(InputError, match="--compiler 'gpu' is not offered; choose tpu, cpu"):
        find_compiler("gpu", 8)


# -- the environment -------------------------------------------------------------------------------------------------


def test_the_compilers_process_is_told_that_no_tpu_is_here(machine: Machine) -> None:
    machine(BOTH)
    assert find_compiler(None, 8).environment == {**QUIET, "JAX_PLATFORMS": "cpu"}
    assert dict(os.environ) == {}


def test_what_the_user_set_stays_but_for_the_platform(machine: Machine) -> None:
    machine(BOTH, TPU_MIN_LOG_LEVEL="0", JAX_PLATFORMS="tpu,cpu")
    environment = find_compiler(None, 8).environment
    assert "TPU_MIN_LOG_LEVEL" not in environment
    assert (environment["JAX_PLATFORMS"], environment["TPU_SKIP_MDS_QUERY"]) == ("cpu", "1")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", "--xla_force_host_platform_device_count=16"),
        ("--xla_dump_to=x", "--xla_dump_to=x --xla_force_host_platform_device_count=16"),
        ("--xla_force_host_platform_device_count=4", "--xla_force_host_platform_device_count=16"),
    ],
)
def test_the_cpu_has_as_many_devices_as_the_slice(machine: Machine, given: str, expected: str) -> None:
    machine(BOTH, XLA_FLAGS=given)
    assert find_compiler("cpu", 16).environment["XLA_FLAGS"] == expected


def test_versions_are_those_that_are_installed() -> None:
    assert toolchain._version("pytest") == pytest.__version__
    assert toolchain._version("slicewise-of-nobody") is None
