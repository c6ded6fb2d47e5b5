"""Chips and their quotes."""

from slicewise.catalog.load import find_chip


def test_gpus_hang_on_switches_and_tpus_do_not() -> None:
    assert find_chip("h100").is_gpu
    assert not find_chip("v5e").is_gpu


def test_a_quote_says_who_asks_what_and_when() -> None:
    assert str(find_chip("v5e").prices[0]) == "$1.2 per chip-hour, Google Cloud, as chapter 8 prints it, 2025-02"
