"""What AIPerf and GenAI-Perf export: `profile_export_aiperf.json`, `profile_export_genai_perf.json`.

Each metric is an object with its unit and statistics. The configuration under `input_config` is promised to nobody, and
has had four shapes: GenAI-Perf's arguments (`model`, `concurrency`) and later its sections (`model_names`,
`perf_analyzer.stimulus`), AIPerf's first (`endpoint.model_names`, `loadgen`) and later one (`models.items`, `phases`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slicewise.calibrate.measurement import DECODE
from slicewise.calibrate.row import Row, seconds
from slicewise.calibrate.served import crowd, served_model, sifted
from slicewise.calibrate.stated import Sifted, Stated
from slicewise.errors import InputError

_METRICS = ("time_to_first_token", "inter_token_latency", "request_latency")


def is_export(keys: Mapping[str, Any]) -> bool:
    """Whether it is an export of either tool."""
    return any(isinstance(keys.get(name), Mapping) for name in _METRICS) or (
        "input_config" in keys and "request_throughput" in keys
    )


def read(row: Row) -> Sifted:
    """The decode step and the prefill of one prompt, from a run with one request at a time.

    Raises:
        InputError: a value is off.
    """
    config = row.section("input_config")
    concurrency = _concurrency(config)
    if concurrency != 1:
        return crowd(concurrency)
    model, loose = served_model(_model(config))
    about = Stated(
        where=row.where,
        phase=DECODE,
        seconds=0.0,
        model=model,
        prompt_tokens=_length(row, "input_sequence_length"),
        output_tokens=_length(row, "output_sequence_length"),
        loose=loose,
    )
    return sifted(about, _time(row, "time_to_first_token"), _time(row, "inter_token_latency"))


def _middle(metric: Row) -> tuple[str, float | None]:
    """The median of a metric, or its mean where there is none; and which of them it is."""
    name = "p50" if metric.states("p50") else "avg"
    return name, metric.measured(name)


def _time(row: Row, name: str) -> float | None:
    """The median of a time, in seconds. [s]"""
    metric = row.section(name)
    statistic, value = _middle(metric)
    if value is None:
        return None
    unit = metric.text("unit")
    if unit is None:
        raise InputError(f"{metric.what('unit')}: states no unit of its times; write ms")
    return seconds(value, unit, metric.what(statistic))


def _length(row: Row, name: str) -> int | None:
    _, value = _middle(row.section(name))
    return None if value is None else round(value)


def _model(config: Row) -> str | None:
    """The one model of the run; None where the configuration names none or several."""
    endpoint = config.section("endpoint")
    models = Row(where=config.where, values={"items": config.values.get("models")})
    listed = models.section("items").listed("items") if isinstance(models.values["items"], Mapping) else []
    names = [item.get("name") for item in listed if isinstance(item, Mapping)]
    names += endpoint.listed("model_names") + config.listed("model_names") + config.listed("model")
    words = list(dict.fromkeys(name for name in names if isinstance(name, str) and name.strip()))
    return Row(where=config.where, values={"model": words[0]}).text("model") if len(words) == 1 else None


def _concurrency(config: Row) -> int | None:
    """Requests at a time; None where they are not bounded, or not by one number."""
    stimulus = config.section("perf_analyzer").section("stimulus")
    for place in (config.section("loadgen"), _profiling(config), stimulus, config):
        values = place.listed("concurrency")
        if len(values) == 1:
            bound = Row(where=place.where, values={"concurrency": values[0]}, prefix=place.prefix)
            return bound.whole("concurrency", 1, "1")
        if values:
            return None
    return None


def _profiling(config: Row) -> Row:
    """The phase that is measured: the one of that name, or the only one; phases are a list, or objects by name."""
    phases = config.values.get("phases")
    named = phases.items() if isinstance(phases, Mapping) else _by_name(phases)
    found = [(name, phase) for name, phase in named if isinstance(phase, Mapping)]
    chosen = [phase for name, phase in found if name == "profiling"] or [phase for _, phase in found]
    values = chosen[0] if len(chosen) == 1 else {}
    return Row(where=config.where, values=values, prefix=f"{config.prefix}phases.profiling.")


def _by_name(phases: object) -> list[tuple[object, object]]:
    listed = phases if isinstance(phases, list) else []
    return [(phase.get("name"), phase) for phase in listed if isinstance(phase, Mapping)]
