"""What engines keep of a chip: ranges as logs show them."""

import pytest

from slicewise.catalog.load import load_model
from slicewise.planner.engines import SGLANG, TPU_INFERENCE, VLLM, Engine
from slicewise.planner.reserve import buffers, graphs, reserve
from slicewise.spec.ranks import Ranks
from slicewise.units import GIB

GIBS = {"most": (2, 6), "experts": (9, 11), "latent experts": (2.8, 9.1)}


@pytest.mark.parametrize(
    ("model", "ranks", "kind"),
    [
        # Logs of vLLM: Llama-70B at tp 4 2.3 to 5.5 GiB, DeepSeek-R1 at tp 8 2.8 to 7.5, Llama-4-Maverick at tp 8 8.7.
        ("llama-3-70b", Ranks(tp=4), "most"),
        ("llama-3-405b", Ranks(tp=8), "most"),
        ("qwen3-vl-30b-a3b", Ranks(), "most"),
        ("llama-4-maverick-17b-128e", Ranks(tp=8), "experts"),
        ("deepseek-v3", Ranks(tp=8, dp=2, ep=16), "latent experts"),
        ("deepseek-v3", Ranks(dp=8, ep=8), "most"),
        ("deepseek-v3", None, "most"),
    ],
)
def test_vllm_keeps_what_its_logs_show(model: str, ranks: Ranks | None, kind: str) -> None:
    kept = reserve(Engine(name=VLLM), load_model(model), ranks)
    assert (kept.low_bytes / GIB, kept.high_bytes / GIB) == pytest.approx(GIBS[kind])
    assert kept.typical_bytes == (kept.low_bytes + kept.high_bytes) / 2
    assert "logs of vllm" in kept.why


@pytest.mark.parametrize(("name", "why"), [(SGLANG, "static fraction"), (TPU_INFERENCE, "what the fraction leaves")])
def test_others_keep_nothing_of_their_fraction(name: str, why: str) -> None:
    kept = reserve(Engine(name=name), load_model("deepseek-v3"), Ranks(tp=8))
    assert (kept.low_bytes, kept.typical_bytes, kept.high_bytes) == (0, 0, 0)
    assert why in kept.why


def test_graphs_and_buffers_are_ranges() -> None:
    low, high = graphs()
    assert 0 < low < high < 2 * GIB
    low, high = buffers(8)
    assert 0 < low < high < 2 * GIB
    assert buffers(1) == (0, 0)
