"""A plan as a server: its tables against the planner's own times, and its blocks against the planner's ledger."""

import numpy as np
import pytest

from helpers.traffic import made_requests
from slicewise.errors import InputError
from slicewise.planner.deployment import Deployment
from slicewise.planner.question import ask
from slicewise.planner.slices import default_deployment
from slicewise.traffic.planned import blocks_of, pool_of, receiving, server_of, times_of
from slicewise.traffic.server import Policy

VIEWS = ("roofline", "overlapped", "serial", "expected")
LONGEST = 20_000
MODELS = [
    pytest.param("llama-3-70b", {"slice": "v5e:4x4", "weights": "int8", "kv": "int8"}, id="dense"),
    pytest.param("llama-3-8b", {"slice": "v5e:2x2"}, id="dense-with-another-term-in-long-contexts"),
    pytest.param("gemma-3-27b", {"slice": "h100:4"}, id="windows"),
    pytest.param("gemma-2-9b", {"slice": "v5e:2x4"}, id="windows-on-a-torus"),
    pytest.param("deepseek-v3", {"slice": "h200:8", "tp": 8}, id="latent"),
    pytest.param("deepseek-v3.2", {"slice": "h200:8", "tp": 8}, id="sparse"),
    pytest.param("qwen3-30b-a3b", {"slice": "h100:4"}, id="mixture"),
    pytest.param("gpt-oss-120b", {"slice": "h100:2"}, id="mixture-with-windows"),
    pytest.param("qwen3-next-80b-a3b", {"slice": "h100:4"}, id="states"),
]


def planned(model: str, flags: dict) -> Deployment:
    return default_deployment(ask(model, flags))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("model", "flags"), MODELS)
def test_times_are_those_of_the_planner_at_every_context(model: str, flags: dict, view: str) -> None:
    """Between its knots, too: a step is made of straight lines, and the table has the points at which they meet."""
    deployment = planned(model, {**flags, "view": view})
    times = times_of(deployment, 48, LONGEST)
    contexts = np.unique(np.concatenate([np.geomspace(1, LONGEST, 200).round(), np.arange(2040.0, 2056)]))
    for batch in (1, 2, 3, 7, 16, 33, 48):
        right_s = np.broadcast_to(deployment.value("step_s", batch=batch, context_tokens=contexts), contexts.shape)
        found_s = [times.step_s(batch, batch * context) for context in contexts.tolist()]
        np.testing.assert_allclose(found_s, right_s, rtol=1e-6)
    for tokens in (1, 2, 100, 4097, LONGEST):
        right_s = float(deployment.value("prefill_s", prompt_tokens=tokens))
        assert times.prefill_s(tokens) == pytest.approx(right_s, rel=1e-12)


def test_a_table_has_the_points_where_another_term_becomes_the_largest() -> None:
    deployment = planned("llama-3-8b", {"slice": "v5e:2x2", "view": "expected"})
    times = times_of(deployment, 48, LONGEST)
    assert len(times.knots) > 10  # they differ by batch
    kinks = np.abs(np.diff(np.diff(times.steps_s[1:], axis=1) / np.diff(times.knots), axis=1))
    # At each inner knot some row has one: what is straight for all is left out.
    assert (kinks.max(axis=0) > 1e-9 * times.steps_s.max() / LONGEST).all()


def test_a_straight_step_needs_no_knots() -> None:
    deployment = planned("llama-3-70b", {"slice": "v5e:4x4", "weights": "int8", "kv": "int8", "view": "roofline"})
    assert times_of(deployment, 8, LONGEST).knots.tolist() == [0, LONGEST]


def test_other_quantities_than_those_that_decide() -> None:
    deployment = planned("llama-3-8b", {"slice": "h100:1", "view": "expected"})
    times = times_of(deployment, 4, 5000, ("step_roofline_s", "prefill_roofline_s"))
    right_s = deployment.value("step_roofline_s", batch=3, context_tokens=4000)
    assert times.step_s(3, 12_000) == pytest.approx(float(right_s))
    assert times.prefill_s(4000) == pytest.approx(float(deployment.value("prefill_roofline_s", prompt_tokens=4000)))


@pytest.mark.parametrize("block_tokens", [1, 16, 256])
@pytest.mark.parametrize(("model", "flags"), MODELS)
def test_blocks_are_those_of_the_ledger(model: str, flags: dict, block_tokens: int) -> None:
    """As many sequences of T + G tokens as the planner's largest batch, but for parts of blocks."""
    deployment = planned(model, {**flags, "isl": 4096, "osl": 512})
    tokens, most = 4096 + 512, int(deployment.value("max_batch"))
    policy = Policy(max_num_seqs=most, block_tokens=block_tokens)
    found = blocks_of(deployment, policy, made_requests([(0, 4096, 512), (1, 4096, 512)]))
    assert most > 3
    assert most * tokens - block_tokens < found * block_tokens < (most + 1) * tokens * 1.001


def test_blocks_of_windows_are_shares_of_a_request_of_mean_length() -> None:
    deployment = planned("gemma-3-27b", {"slice": "h100:4"})
    short, long = (blocks_of(deployment, Policy(), made_requests([(0, tokens, 10)])) for tokens in (1000, 100_000))
    # Beyond its window a layer keeps no more: tokens of long requests take less room.
    assert long > 3 * short


def test_a_larger_batch_leaves_less_room() -> None:
    deployment = planned("llama-3-8b", {"slice": "h100:1"})
    requests = made_requests([(0, 1000, 100)])
    few, many = (blocks_of(deployment, Policy(max_num_seqs=n), requests) for n in (8, 512))
    assert many < few
    spent = 504 * float(deployment.value("activation_bytes", batch=1))
    per_block = 16 * float(deployment.value("kv_bytes_per_token"))
    assert few - many == pytest.approx(spent / per_block, abs=2)


def test_no_room_for_a_block_is_refused() -> None:
    deployment = planned("llama-3-70b", {"slice": "v5e:2x2", "weights": "bf16"})
    with pytest.raises(InputError, match="no room for a block of the cache beside the weights; take a larger --slice"):
        blocks_of(deployment, Policy(), made_requests([(0, 100, 100)]))


@pytest.mark.parametrize("ranks", [{"tp": 4, "dp": 2}, {"tp": 4, "pp": 2}])
def test_several_groups_or_stages_are_refused(ranks: dict) -> None:
    deployment = planned("llama-3-8b", {"slice": "h100:8", **ranks})
    with pytest.raises(InputError, match="leave out --pp and --dp, and give --replicas instead"):
        server_of(deployment, Policy(), made_requests([(0, 100, 100)]))


def test_a_server_has_tables_for_its_requests() -> None:
    server = server_of(
        planned("llama-3-8b", {"slice": "h100:1"}), Policy(max_num_seqs=9), made_requests([(0, 100, 7), (0, 50, 90)])
    )
    assert server.times.most_sequences == 9
    assert len(server.times.prefills_s) == 141
    assert server.n_blocks == pytest.approx(28_000, rel=0.2)


def test_a_pool_hands_over_at_the_rate_of_the_slower_end() -> None:
    prefill, decode = (planned("llama-3-8b", {"slice": slice_}) for slice_ in ("v5e:2x4", "v5e:2x2"))
    pool = pool_of(prefill, decode, 3, 8192)
    assert (pool.n_servers, pool.n_chips) == (3, 8)
    assert pool.prefills_s[8192] == pytest.approx(float(prefill.value("prefill_s", prompt_tokens=8192)))
    receives = float(decode.value("handoff_receive_bytes_per_s"))
    assert receives < float(prefill.value("handoff_send_bytes_per_s"))
    assert pool.handoff_s_per_token * 8192 == pytest.approx(131_072 * 8192 / receives)
    assert pool.usd_per_hour is not None
    assert pool.usd_per_hour == pytest.approx(8 * prefill.price.usd_per_chip_hour)  # type: ignore[union-attr]


def test_an_unknown_network_is_asked_for() -> None:
    flags = {"slice": "l40s:8"}
    with pytest.raises(InputError, match="give --network, such as 400Gb/s"):
        receiving(planned("llama-3-8b", flags))
    known = planned("llama-3-8b", {**flags, "network": "400Gb/s"})
    assert receiving(known) == {}
    assert pool_of(known, known, 1, 1000).handoff_s_per_token == pytest.approx(131_072 / 5e10)
