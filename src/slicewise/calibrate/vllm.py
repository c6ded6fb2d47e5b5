"""What vLLM's benchmarks write: `vllm bench latency`, `serve` and `throughput`, and the scripts they were before.

Keys and units as in vllm/benchmarks of vLLM's repository: latency in seconds; serve in milliseconds, with the numbers
of each request only under --save-detailed. The engine's own flags stand in none of the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from slicewise.calibrate.measurement import DECODE, END_TO_END
from slicewise.calibrate.row import Row, kind, number, seconds
from slicewise.calibrate.served import NO_LENGTHS, OPEN, SPECULATIVE, crowd, served_model, sifted
from slicewise.calibrate.stated import Sifted, Stated
from slicewise.errors import InputError

OFFLINE = "offline throughput: the engine chose the batch of each step"
TESTED = "one prompt only, which the tool sent before as a test: its prefill may have been cached"
_SERVE = ("mean_ttft_ms", "median_ttft_ms", "mean_tpot_ms", "median_tpot_ms", "total_input_tokens")
_SPECULATIVE = ("spec_decode_acceptance_length", "accept_length")
"""Tokens of a step, as vLLM and SGLang have them; the latter's bench_serving writes the names of vLLM's else."""
_ENGINES = ("vllm", "sglang")
"""Backends of the client that are named after a server; a flag may say better."""


def is_latency(keys: Mapping[str, Any]) -> bool:
    """Whether it is of `vllm bench latency`."""
    return "avg_latency" in keys and ("latencies" in keys or "percentiles" in keys)


def is_serve(keys: Mapping[str, Any]) -> bool:
    """Whether it is of `vllm bench serve`."""
    return "completed" in keys and any(name in keys for name in _SERVE)


def is_throughput(keys: Mapping[str, Any]) -> bool:
    """Whether it is of `vllm bench throughput`."""
    return "elapsed_time" in keys and "num_requests" in keys


def read_latency(row: Row) -> Sifted:
    """The median time of a batch from its prompts to its last tokens; the file states neither batch nor lengths.

    Raises:
        InputError: a time is off.
    """
    times = _numbers(row, "latencies")
    middle = row.section("percentiles").positive("50", "2.5")
    time_s = median(times) if times else middle or row.positive("avg_latency", "2.5")
    if time_s is None:
        raise InputError(f"{row.where}: holds no latency; give the file that --output-json wrote")
    # On TPUs it is vLLM's other engine that ran.
    one = Stated(where=row.where, phase=END_TO_END, seconds=time_s, engine="vllm", loose=frozenset({"engine"}))
    return Sifted(stated=(one,))


def read_serve(row: Row) -> Sifted:
    """The decode step and the prefill of one prompt, from a run with one request at a time.

    Raises:
        InputError: a value is off.
    """
    concurrency, completed = row.whole("max_concurrency", 1, "1"), row.whole("completed", 0, "100")
    if concurrency != 1:
        return crowd(concurrency)
    if row.states("probe_completed"):
        return Sifted(left_out=(OPEN,))
    if not completed:
        return Sifted(left_out=(NO_LENGTHS,))
    ttft_s, tpot_s = (_time(row, name) for name in ("ttft", "tpot"))
    speculative = tpot_s is not None and any(map(row.states, _SPECULATIVE))
    tested = ttft_s is not None and completed == 1
    found = sifted(_about(row, completed), ttft_s, tpot_s)
    why = ((SPECULATIVE,) if speculative else ()) + ((TESTED,) if tested else ())
    kept = [one for one in found.stated if not (speculative if one.phase == DECODE else tested)]
    return Sifted(stated=tuple(kept), left_out=found.left_out + why)


def read_throughput(row: Row) -> Sifted:
    """Nothing of use: the batch of no step is known."""
    del row
    return Sifted(left_out=(OFFLINE,))


def _about(row: Row, completed: int) -> Stated:
    model, loose = served_model(row.text("model_id"))
    backend = row.text("backend")
    return Stated(
        where=row.where,
        phase=DECODE,
        seconds=0.0,
        model=model,
        prompt_tokens=_length(row, "input_lens", "total_input_tokens", completed),
        output_tokens=_length(row, "output_lens", "total_output_tokens", completed),
        engine=backend if backend in _ENGINES else None,
        loose=loose | {"engine"},
    )


def _time(row: Row, name: str) -> float | None:
    """A median time, or the mean where there is none. [s]"""
    for key in (f"median_{name}_ms", f"mean_{name}_ms"):
        value = row.measured(key)
        if value is not None:
            return seconds(value, "ms", row.what(key))
    return None


def _length(row: Row, each: str, total: str, completed: int) -> int | None:
    """Tokens of the median request, where each is there; else of the mean one."""
    lengths = _numbers(row, each)
    if lengths:
        return round(median(lengths))
    value = row.whole(total, 0, "102400")
    return None if value is None else round(value / completed)


def _numbers(row: Row, name: str) -> list[float]:
    """The numbers of a list above zero, which is what a failed request has."""
    if not row.states(name):
        return []
    values = row.values[name]
    if not isinstance(values, list):
        raise InputError(f"{row.what(name)}: {kind(values)} is no list; give the tool's own file")
    found = [number(value, f"{row.what(name)}[{at}]", "2.5") for at, value in enumerate(values)]
    if any(value < 0 for value in found):
        raise InputError(f"{row.what(name)}: {min(found):g} is below 0; give the tool's own file")
    return [value for value in found if value > 0]
