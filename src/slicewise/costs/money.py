"""Money: what a slice, a request and a million tokens cost at a price per chip-hour."""

from __future__ import annotations

from slicewise.costs.real import Real
from slicewise.units import HOUR_S, MILLION, MONTH_HOURS


def usd_per_hour(n_chips: Real, usd_per_chip_hour: Real) -> Real:
    """Price of the slice for an hour. [USD]"""
    return n_chips * usd_per_chip_hour


def request_usd(usd_per_hour: Real, replica_s_per_request: Real) -> Real:
    """Cost of one request where prefill and decode share the chips. [USD]"""
    return usd_per_hour / HOUR_S * replica_s_per_request


def replicas_usd_per_hour(replicas_chips: Real, usd_per_chip_hour: Real) -> Real:
    """Price for an hour of the servers that do both phases. [USD]"""
    return replicas_chips * usd_per_chip_hour


def split_usd_per_hour(split_chips: Real, usd_per_chip_hour: Real) -> Real:
    """Price for an hour of the prefill and the decode servers. [USD]"""
    return split_chips * usd_per_chip_hour


def usd_per_million_input_tokens(usd_per_hour: Real, prefill_s: Real, prompt_tokens: Real) -> Real:
    """Cost of a million prompt tokens: prefill's share. [USD]"""
    return usd_per_hour / HOUR_S * prefill_s / prompt_tokens * MILLION


def usd_per_million_output_tokens(usd_per_hour: Real, tokens_per_s: Real) -> Real:
    """Cost of a million generated tokens: decode's share. [USD]"""
    return usd_per_hour / HOUR_S / tokens_per_s * MILLION


def usd_per_million_tokens(request_usd: Real, prompt_tokens: Real, output_tokens: Real) -> Real:
    """Blended cost of a million tokens, prompt and generated alike. [USD]"""
    return request_usd / (prompt_tokens + output_tokens) * MILLION


def usd_per_month(usd_per_hour: Real) -> Real:
    """Price of the slice for a month, used or not. [USD]"""
    return usd_per_hour * MONTH_HOURS


def sustained_tokens_per_s(tokens_per_s: Real, utilisation: Real) -> Real:
    """Tokens a second on average, where the slice is busy for a share of the time. [1/s]"""
    return tokens_per_s * utilisation


def usd_per_million_sustained_tokens(usd_per_hour: Real, sustained_tokens_per_s: Real) -> Real:
    """Cost of a million generated tokens, idle hours paid for too. [USD]"""
    return usd_per_hour / HOUR_S / sustained_tokens_per_s * MILLION


def breakeven_tokens_per_month(usd_per_month: Real, api_usd_per_million_tokens: Real) -> Real:
    """Tokens a month from which owning the slice is cheaper than paying for each token. []"""
    return usd_per_month / api_usd_per_million_tokens * MILLION


def breakeven_utilisation(breakeven_tokens_per_month: Real, tokens_per_s: Real) -> Real:
    """Share of a month that the slice must be busy to make as many tokens; above 1 it cannot. []"""
    return breakeven_tokens_per_month / (tokens_per_s * HOUR_S * MONTH_HOURS)


def flops_per_usd(flops_per_s: Real, usd_per_chip_hour: Real) -> Real:
    """Peak FLOPs that a dollar buys. [FLOP/USD]

    Source: scaling-book-applied-inference
    """
    return flops_per_s * HOUR_S / usd_per_chip_hour


def bytes_moved_per_usd(hbm_bytes_per_s: Real, usd_per_chip_hour: Real) -> Real:
    """HBM bytes that a dollar moves. [B/USD]"""
    return hbm_bytes_per_s * HOUR_S / usd_per_chip_hour


def hbm_byte_hours_per_usd(hbm_bytes_per_chip: Real, usd_per_chip_hour: Real) -> Real:
    """Bytes of HBM that a dollar holds for an hour. [B/USD]"""
    return hbm_bytes_per_chip / usd_per_chip_hour
