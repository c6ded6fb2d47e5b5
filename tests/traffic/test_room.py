"""What a server holds is what the planner's ledger holds, for few long requests and for many."""

import numpy as np
import pytest

from helpers.traffic import made_requests
from slicewise.planner.question import ask
from slicewise.planner.slices import default_deployment
from slicewise.planner.step import step_of
from slicewise.traffic.engine import fits
from slicewise.traffic.planned import server_of
from slicewise.traffic.server import Policy


@pytest.mark.parametrize("slice_", ["v5e:4x4", "v5e:4x8", "v5e:8x8", "h100:8", "v5e:2x4"])
def test_a_request_is_served_where_the_planner_says_that_one_fits(slice_: str) -> None:
    """Whole sequences lie on a part of the chips where the batch is split over them."""
    words = {"slice": slice_, "weights": "int8", "kv": "int8", "osl": 16}
    served = []
    lengths = np.geomspace(100_000, 6_000_000, 9).astype(int).tolist()
    for tokens in lengths:
        deployment = default_deployment(ask("llama-3-70b", {**words, "isl": tokens}))
        requests = made_requests([(0.0, tokens, 16)])
        server = server_of(deployment, Policy(max_num_seqs=16), requests)
        served.append(bool(fits(requests, server)[0]))
        planned = step_of(deployment, 1)
        # Blocks are whole, and room for the activations of 16 sequences is kept.
        if abs(planned.free_bytes) > 0.01 * planned.hbm_bytes:
            assert served[-1] == planned.fits, tokens
    assert served[0]
    assert not served[-1]
