"""What `simulate` and `size` say as text: of servers by the closed form, of goodput, and of a run that was stopped."""

import signal
from dataclasses import replace
from typing import Any

import pytest

import slicewise
from helpers.plans import LOAD, MODEL, PLACE, simulated
from slicewise.report.document import Line
from slicewise.report.views.simulate import simulate_document
from slicewise.report.views.size import size_document
from slicewise.traffic.cheapest import Size

FOUND = slicewise.size(
    MODEL, **PLACE, **{**LOAD, "rate": "30"}, ttft="p95:400ms", servers="shared", policy="prefill-first"
)


def closed_form(found: Size) -> str:
    (line,) = (each for each in lines(size_document(found)) if each.startswith("By the closed form"))
    return line


def lines(document: list[Any]) -> list[str]:
    return [each.text for each in document if isinstance(each, Line)]


@pytest.mark.parametrize(
    ("more", "said"), [(0, "the same as simulated"), (-1, "the others keep queues short"), (1, "not fewer than meet")]
)
def test_the_servers_of_the_closed_form_are_compared_with_the_best(more: int, said: str) -> None:
    assert FOUND.steady is not None
    servers = FOUND.sizing.best.n_servers + more
    text = closed_form(replace(FOUND, steady=replace(FOUND.steady, servers=servers)))
    assert f"takes {servers:,} server" in text
    for each in ("the same as simulated", "the others keep queues short", "not fewer than meet"):
        assert (each in text) == (each == said)


def test_a_size_says_which_figure_its_times_are() -> None:
    said = "Steps and prefills take what is expected. `--view overlapped --mfu 1` runs at the bound"
    assert any(each.startswith(said) for each in lines(size_document(FOUND)))
    words = {**PLACE, **LOAD, "rate": "30", "servers": "shared", "policy": "prefill-first"}
    refused = slicewise.size(MODEL, **words, ttft="1us")
    assert not refused.fits
    assert any(each.startswith(said) for each in lines(size_document(refused)))


def test_a_stopped_run_says_that_it_is_not_judged() -> None:
    def stop(done: int, of: int) -> None:
        if done * 2 > of:
            signal.raise_signal(signal.SIGINT)

    text = " ".join(lines(simulate_document(simulated(ttft="100s", progress=stop))))
    assert "Limits: stopped before the end, so that the limits cannot be judged." in text
    assert "Every limit is kept" not in text
    assert "Every limit is kept." in " ".join(lines(simulate_document(simulated(ttft="100s"))))


def test_goodput_names_the_limits_that_it_is_by() -> None:
    tables = [each for each in simulate_document(simulated(e2e="5s", itl="1s")) if hasattr(each, "rows")]
    assert any(row[0] == "  of them within TTFT/TPOT/end to end" for table in tables for row in table.rows)
