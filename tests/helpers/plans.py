"""Planned servers and what is asked of them: small questions, with answers in tenths of a second."""

from typing import Any

import slicewise
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import ask, chosen_by
from slicewise.planner.slices import default_deployment
from slicewise.traffic.simulation import Simulation

MODEL = "llama-3-70b"
PLACE = {"slice": "v5e:4x4", "weights": "int8", "kv": "int8"}
LOAD = {"rate": "2", "requests": "60", "isl": "1000", "osl": "60"}
VIEWS = ("roofline", "overlapped", "serial", "expected")
BOOK = {"book": True, "params": "70e9"}


def deployment(model: str = MODEL, **flags: Any) -> Deployment:
    """One server, with times that are expected unless a view is given."""
    return default_deployment(ask(model, chosen_by({**PLACE, **flags})))  # type: ignore[arg-type]  # words of tests


def simulated(model: str = MODEL, **words: Any) -> Simulation:
    """A short run without the range."""
    return slicewise.simulate(model, **{**PLACE, **LOAD, "no_range": True, **words})
