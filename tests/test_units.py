"""Units: parsing against pint and exact arithmetic, printing, and errors of one line."""

import json
import math

import numpy as np
import pint
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slicewise.errors import InputError
from slicewise.units import parse, parse_count, parse_positive, plain, show, show_gib, unit_of

UNITS = ("s", "B", "B/s", "FLOP/s", "USD", "params", "tokens", "count", "fraction", "request/s")

REGISTRY = pint.UnitRegistry()
REGISTRY.define("FLOP = [flop]")
WITH_UNIT = ("s", "B", "B/s", "FLOP/s")
BASE = {"s": "second", "B": "byte", "B/s": "byte/second", "FLOP/s": "FLOP/second"}


@pytest.mark.parametrize(
    ("text", "unit", "as_pint_writes_it"),
    [
        ("15ms", "s", "15 millisecond"),
        ("0.25 us", "s", "0.25 microsecond"),
        ("3µs", "s", "3 microsecond"),
        ("40 ns", "s", "40 nanosecond"),
        ("2 min", "s", "2 minute"),
        ("1.5h", "s", "1.5 hour"),
        ("2s", "s", "2 second"),
        ("16GB", "B", "16 gigabyte"),
        ("16 GiB", "B", "16 gibibyte"),
        ("15.75GiB", "B", "15.75 gibibyte"),
        ("95.74 GiB", "B", "95.74 gibibyte"),
        ("163,840 B", "B", "163840 byte"),
        ("1 TB", "B", "1 terabyte"),
        ("1 TiB", "B", "1 tebibyte"),
        ("2PiB", "B", "2 pebibyte"),
        ("64 KiB", "B", "64 kibibyte"),
        ("64 kB", "B", "64 kilobyte"),
        ("12 MiB", "B", "12 mebibyte"),
        ("400 Gb/s", "B/s", "400 gigabit/second"),
        ("400Gbps", "B/s", "400 gigabit/second"),
        ("400 Gbit/s", "B/s", "400 gigabit/second"),
        ("50 GB/s", "B/s", "50 gigabyte/second"),
        ("50GBps", "B/s", "50 gigabyte/second"),
        ("1.2 TB/s", "B/s", "1.2 terabyte/second"),
        ("2765 GiB/s", "B/s", "2765 gibibyte/second"),
        ("8.2e11 B/s", "B/s", "8.2e11 byte/second"),
        ("918 TFLOP/s", "FLOP/s", "918 TFLOP/second"),
        ("918TFLOPS", "FLOP/s", "918 TFLOP/second"),
        ("2.3 PFLOP/s", "FLOP/s", "2.3 PFLOP/second"),
        ("393 TOP/s", "FLOP/s", "393 TFLOP/second"),
    ],
)
def test_pint_reads_the_same(text: str, unit: str, as_pint_writes_it: str) -> None:
    assert parse(text, unit) == pytest.approx(REGISTRY.Quantity(as_pint_writes_it).to(BASE[unit]).magnitude, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("70e9", "params", 70e9),
        ("70B", "params", 70e9),
        ("1.5M", "params", 1.5e6),
        ("1,000,000", "tokens", 1e6),
        ("8_192 tokens", "tokens", 8192.0),
        ("$1.2", "USD", 1.2),
        ("1.2 USD", "USD", 1.2),
        ("95%", "fraction", 0.95),
        (".5", "fraction", 0.5),
        ("10/s", "request/s", 10.0),
        ("10 rps", "request/s", 10.0),
        ("+3", "count", 3.0),
        ("-3", "count", -3.0),
        (7, "count", 7.0),
        (0.1, "s", 0.1),
    ],
)
def test_people_write_quantities_in_many_ways(text: str | float, unit: str, value: float) -> None:
    assert parse(text, unit) == value


def test_bits_are_not_bytes() -> None:
    assert parse("400 Gb/s", "B/s") == parse("50 GB/s", "B/s") == 50e9


def test_binary_is_not_decimal() -> None:
    assert parse("16 GiB", "B") / parse("16 GB", "B") == 2**30 / 10**9


@given(st.integers(0, 10**6), st.sampled_from(["ms", "us"]))
def test_decimal_fractions_stay_exact(count: int, suffix: str) -> None:
    assert parse(f"{count}{suffix}", "s") == count / {"ms": 1000, "us": 1_000_000}[suffix]


@given(st.floats(1e-9, 1e20), st.sampled_from(["s", "B", "B/s", "FLOP/s", "USD"]))
def test_what_is_shown_reads_back(value: float, unit: str) -> None:
    digits = 5e-4 if unit == "USD" else 5e-5
    # Money has two decimals at least, bytes are whole.
    atol = {"USD": 0.0051 if value >= 1 else 0.0, "B": 0.0}.get(unit, 0.0)
    assert parse(show(value, unit), unit) == pytest.approx(value, rel=1.01 * digits, abs=atol)


@given(st.integers(0, 9_999_999))
def test_small_byte_counts_are_shown_exactly(n_bytes: int) -> None:
    assert show(n_bytes, "B") == f"{n_bytes:,} B"
    assert parse(show(n_bytes, "B"), "B") == n_bytes


@given(st.floats(1e-20, 1e20) | st.integers(-(10**15), 10**15), st.sampled_from(UNITS))
def test_numbers_are_in_the_base_unit_and_texts_of_times_bytes_and_rates_name_theirs(value: float, unit: str) -> None:
    assert parse(value, unit) == value
    if unit in WITH_UNIT:
        with pytest.raises(InputError, match="has no unit; write for example"):
            parse(repr(value), unit)
    else:
        assert parse(repr(value), unit) == value


WRONG = [
    "",
    " ",
    "ms",
    "abc",
    "1..2",
    "1 2",
    "--1",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "16 GX",
    "5 parsecs",
    "0x10",
    "True",
    "1/2",
]


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("unit", UNITS)
def test_what_is_no_quantity_is_refused_in_one_line_that_names_the_flag_and_an_example(text: str, unit: str) -> None:
    with pytest.raises(InputError) as refused:
        parse(text, unit, "--flag")
    message = str(refused.value)
    assert message.startswith("--flag: ")
    assert "write for example" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, True, None, pytest.param(10**400, id="huge"), pytest.param(-(10**400), id="-huge")],
)
def test_values_that_are_no_finite_number_are_refused(value: object) -> None:
    with pytest.raises(InputError):
        parse(value, "s")


@given(
    st.text() | st.from_regex(r"\A[-+]?[0-9_,.]{1,6}(e[0-9]{1,3})? ?(GB|GiB|ms|Gb/s|TFLOP/s|B|%)?\Z"),
    st.sampled_from(UNITS),
)
@example("1e300GB", "B")
@example("1\n2", "s")
@example("9" * 400, "count")
@example("²", "count")
def test_any_text_is_a_finite_number_or_refused_in_one_line(text: str, unit: str) -> None:
    try:
        assert math.isfinite(parse(text, unit))
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - both outcomes are right


@pytest.mark.parametrize("text", ["0 GB", "-5GB", "0B", "1e-999 GB"])
def test_what_must_be_positive_is(text: str) -> None:
    with pytest.raises(InputError, match=r"--hbm: .* must be greater than 0"):
        parse_positive(text, "B", "--hbm")


@pytest.mark.parametrize("text", ["1,5ms", "2048,4096", "1,23,456", "1.5.2", "10,00"])
def test_commas_part_thousands_and_nothing_else(text: str) -> None:
    with pytest.raises(InputError, match="is not a quantity"):
        parse(text, "s")


def test_k_is_refused_where_it_may_mean_1000_or_1024() -> None:
    with pytest.raises(InputError, match=r"'8k' may mean 1,000 or 1,024 times 8; write 8192 or 8000"):
        parse_count("8k", "--isl")


@pytest.mark.parametrize("text", ["1.5", "0", "-2", "0.1", 2.5])
def test_counts_are_whole_and_at_least_one(text: str | float) -> None:
    with pytest.raises(InputError, match="--batch"):
        parse_count(text, "--batch")
    assert parse_count("1e3", "--batch") == 1000


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("step_s", "s"),
        ("step_overlapped_s", "s"),
        ("replica_s_per_request", "s"),
        ("hbm_bytes_per_s", "B/s"),
        ("dcn_bytes_per_s_per_chip", "B/s"),
        ("all_gather_bytes_per_s", "B/s"),
        ("flops_per_s", "FLOP/s"),
        ("matmul_flops", "FLOP"),
        ("kv_bytes", "B"),
        ("kv_bytes_per_token", "B"),
        ("total_bytes_per_chip", "B"),
        ("weight_bytes_per_param", "B"),
        ("tokens_per_s", "1/s"),
        ("tokens_per_s_per_chip", "1/s"),
        ("requests_per_s_per_chip", "1/s"),
        ("requests_per_s_shared", "1/s"),
        ("usd_per_hour", "USD"),
        ("request_usd", "USD"),
        ("usd_per_million_output_tokens", "USD"),
        ("flops_per_usd", "FLOP/USD"),
        ("bytes_moved_per_usd", "B/USD"),
        ("hbm_byte_hours_per_usd", "B/USD"),
        ("batch", ""),
        ("context_tokens", ""),
        ("kv_replication", ""),
        ("n_heads", ""),
        ("critical_batch", ""),
    ],
)
def test_names_end_in_their_unit(name: str, unit: str) -> None:
    assert unit_of(name) == unit


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.017218, "s", "17.218 ms"),
        (1.5, "s", "1.5 s"),
        (2e-6, "s", "2 µs"),
        (0, "s", "0 s"),
        (-0.002, "s", "-2 ms"),
        (112.95e9, "B", "112.95 GB"),
        (163840, "B", "163,840 B"),
        (0, "B", "0 B"),
        (1.28849e12, "B", "1.2885 TB"),
        (8.2e11, "B/s", "820 GB/s"),
        (1.97e14, "FLOP/s", "197 TFLOP/s"),
        (1.2, "USD", "$1.200"),
        (0.0123456, "USD", "$0.01235"),
        (12345.678, "USD", "$12,345.68"),
        (5.91e17, "FLOP/USD", "5.91e+17 FLOP/USD"),
        (1858.5, "1/s", "1,858.5 /s"),
        (240.24, "", "240.24"),
        (70_553_706_496, "", "70,553,706,496"),
        (math.inf, "s", "unlimited"),
        (None, "USD", "unknown"),
    ],
)
def test_people_are_shown_what_they_read_easily(value: float | None, unit: str, text: str) -> None:
    assert show(value, unit) == text


def test_gb_and_gib_stand_side_by_side() -> None:
    # 141.107 GB and 131.417 GiB: https://github.com/llm-d/llm-d-benchmark/issues/381
    assert show_gib(70_553_706_496 * 2) == "141.11 GB (131.42 GiB)"


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.floats().map(np.float64))
def test_plain_numbers_are_json(value: object) -> None:
    found = plain(value)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    if isinstance(value, float) and math.isfinite(value):
        assert found == value


def test_plain_whole_numbers_are_integers() -> None:
    assert [type(plain(value)) for value in (8.0, np.float64(8.0), np.int64(8), 0.5, 2.0**60)] == [
        int, int, int, float, float,
    ]  # fmt: skip
    assert plain(math.inf) is plain(math.nan) is None
