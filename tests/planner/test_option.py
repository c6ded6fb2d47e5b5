"""Options: what a request meets and costs, by phase."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.load import find_chip
from slicewise.planner.deployment import Deployment
from slicewise.planner.option import option_of
from slicewise.planner.step import step_of

PRICE = find_chip("v5e").prices[0]


@given(deployment=..., batch=st.integers(1, 1000))
def test_input_and_output_tokens_cost_what_the_request_does(deployment: Deployment, batch: int) -> None:
    lengths = deployment.workload
    names = ["request_usd", "usd_per_million_input_tokens", "usd_per_million_output_tokens", "usd_per_million_tokens"]
    request, inputs, outputs, blended = deployment.with_(price=PRICE).evaluate(names, batch=batch).values()
    prompt, output = lengths.prompt_tokens, lengths.output_tokens
    assert (inputs * prompt + outputs * output) / 1e6 == pytest.approx(request)
    assert blended * (prompt + output) / 1e6 == pytest.approx(request)


@given(deployment=..., batch=st.integers(1, 1000))
def test_an_option_is_its_step_and_its_prefill(deployment: Deployment, batch: int) -> None:
    if not step_of(deployment, batch).fits:
        return
    option = option_of(deployment, batch, "because")
    output = deployment.workload.output_tokens
    in_flight = deployment.ranks.pp * deployment.ranks.dp if deployment.ranks else 1
    assert option.prefill_s == deployment.value("prefill_s")
    assert option.ttft_s == pytest.approx(option.prefill_s * in_flight, rel=1e-15)
    assert option.tpot_s == option.step.step_s
    assert option.replica_s_per_request == pytest.approx(option.prefill_s + output * option.tpot_s / batch)
    assert option.requests_per_s_shared * option.replica_s_per_request == pytest.approx(1)
    assert option.tpot_shared_s == pytest.approx(option.tpot_s + batch * option.prefill_s / output)
    priced = deployment.price is not None and not deployment.workload.context_is_set
    assert (option.request_usd is not None) == priced
    found = option.to_dict()
    assert found["why"] == "because"
    assert {"tpot_s", "ttft_s", "batch", "bound"} <= set(found)
    json.dumps(found, allow_nan=False)
