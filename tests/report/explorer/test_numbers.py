"""Numbers for the page: three digits whose parts make the text, and derivations with each value as it is shown."""

import pytest

import slicewise
from slicewise.report.explorer.numbers import exact, number, row, shown
from slicewise.report.explorer.resources import BY_KEY, resource_of

CASES = [
    ("step_s", 0.0172183, "17.2", "ms", "17.2183 ms"),
    ("usd_per_million_output_tokens", 1.4286, "$1.43", "", "$1.428600"),
    ("tokens_per_s", 1858.2, "1,858", "tokens/s", "1,858.2 tokens/s"),
    ("weight_bytes", 112.95e9, "113", "GB", "112.95 GB (105.19 GiB)"),
    ("max_batch", 554, "554", "", "554"),
]


@pytest.mark.parametrize(("name", "value", "figure", "suffix", "in_full"), CASES)
def test_parts_make_the_text(name: str, value: float, figure: str, suffix: str, in_full: str) -> None:
    found = number(name, value, door="answer")
    assert found is not None
    assert (found["figure"], found["suffix"], found["exact"]) == (figure, suffix, in_full)
    assert found["text"] == f"{figure} {suffix}".strip()
    assert found["value"] == value


def test_no_number_is_none() -> None:
    assert number("step_s", None) is None
    assert row("step", None)["number"] is None
    assert exact(0.5, "") == "0.5"


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("param_load_s", "params"), ("weight_bytes_per_chip", "params"), ("n_params", "params"),
        ("streamed_weights_s", "params"), ("kv_load_s", "kv"), ("held_kv_bytes_per_chip", "kv"),
        ("expected_attention_s", "kv"), ("matmul_s", "flops"), ("attention_flops_s", "flops"), ("ici_s", "network"),
        ("activation_bytes", "activations"), ("unused_bytes_per_chip", "free"), ("overhead_s", "other"),
        ("tokens_s", "other"), ("step_s", None), ("tokens_per_s", None), ("batch", None), ("request_usd", None),
    ],
)  # fmt: skip
def test_resource_of_a_quantity(name: str, resource: str | None) -> None:
    assert resource_of(name) == resource
    assert resource is None or resource in BY_KEY


def test_derivation_keeps_what_the_command_line_prints() -> None:
    derivation = slicewise.step("llama-3-8b", slice="v5e:2x2").explain("step_s")
    plain, page = derivation.to_dict(), shown(derivation)

    def compare(one: dict, other: dict) -> None:
        assert {key: one[key] for key in one if key != "parts"}.items() <= other.items() or isinstance(
            one["value"], list
        )
        parts = {part["name"]: part for part in other.get("parts", [])}
        for part in one.get("parts", []):
            if part["name"] in parts:
                compare(part, parts[part["name"]])

    compare(plain, page)
    assert page["text"].endswith("ms")
    assert page["parts"]
