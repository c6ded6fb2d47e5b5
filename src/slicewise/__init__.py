"""slicewise plans how to serve a large language model on TPU slices or GPUs, and explains every number.

    >>> import slicewise
    >>> step = slicewise.step("llama-3-70b", slice="v5e:4x2", weights="int8", kv="int8", batch=32, context=8192,
    ...                       book=True, params="70e9")
    >>> round(step.step_s, 6), step.bound
    (0.017218, 'param_load')

Words are those of the command line; results are frozen dataclasses whose `to_dict()` is the JSON.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slicewise.catalog.load import load_model
    from slicewise.catalog.slices import load_slice
    from slicewise.errors import InputError, SlicewiseError
    from slicewise.planner.compare import compare
    from slicewise.planner.cost import cost
    from slicewise.planner.disaggregate import disaggregate
    from slicewise.planner.frontier import frontier
    from slicewise.planner.limits import limits
    from slicewise.planner.memory import memory
    from slicewise.planner.plan import plan
    from slicewise.planner.prefill import prefill
    from slicewise.planner.step import step
    from slicewise.traffic.cheapest import size
    from slicewise.traffic.run import simulate

__version__ = "0.1.0"

_HOMES = {
    "InputError": "slicewise.errors",
    "SlicewiseError": "slicewise.errors",
    "compare": "slicewise.planner.compare",
    "cost": "slicewise.planner.cost",
    "disaggregate": "slicewise.planner.disaggregate",
    "frontier": "slicewise.planner.frontier",
    "limits": "slicewise.planner.limits",
    "load_model": "slicewise.catalog.load",
    "load_slice": "slicewise.catalog.slices",
    "memory": "slicewise.planner.memory",
    "plan": "slicewise.planner.plan",
    "prefill": "slicewise.planner.prefill",
    "simulate": "slicewise.traffic.run",
    "size": "slicewise.traffic.cheapest",
    "step": "slicewise.planner.step",
}

__all__ = [
    "InputError",
    "SlicewiseError",
    "__version__",
    "compare",
    "cost",
    "disaggregate",
    "frontier",
    "limits",
    "load_model",
    "load_slice",
    "memory",
    "plan",
    "prefill",
    "simulate",
    "size",
    "step",
]


def __getattr__(name: str) -> Any:
    """Load what is asked for, and nothing at start-up."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    message = f"module 'slicewise' has no attribute '{name}'"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return __all__
