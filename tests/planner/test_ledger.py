"""The ledger of a chip: what is counted adds up to what is granted, and every line says how sure it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise
from slicewise.errors import UnknownNameError
from slicewise.planner.deployment import Deployment
from slicewise.planner.ledger import ESTIMATE, EXACT, LEDGER_LINE, MOST, RANGE, LedgerLine, ledger_lines, line_of
from slicewise.planner.reserve import graphs
from slicewise.units import GIB

BATCH = st.integers(1, 5000)


def by_name(lines: tuple[LedgerLine, ...]) -> dict[str, LedgerLine]:
    return {line.name: line for line in lines}


def middle(line: LedgerLine) -> float:
    return (line.n_bytes + line.most_bytes) / 2


@given(deployment=..., batch=BATCH)
def test_what_is_counted_and_what_is_free_add_up_to_what_is_granted(deployment: Deployment, batch: int) -> None:
    lines = ledger_lines(deployment, batch)
    found = by_name(lines)
    counted = sum(middle(line) for line in lines if line.counted)
    granted = found["granted"].n_bytes
    assert counted + found["free"].n_bytes == pytest.approx(granted, rel=1e-9, abs=granted * 1e-9)


@given(deployment=..., batch=BATCH)
def test_lines_are_shares_of_the_slices_own_numbers(deployment: Deployment, batch: int) -> None:
    found, n_chips = by_name(ledger_lines(deployment, batch)), deployment.slice.n_chips
    values = {
        name: float(value)
        for name, value in deployment.evaluate(
            ["weight_bytes", "kv_bytes", "activation_bytes", "hbm_bytes", "total_bytes_per_chip"], batch=batch
        ).items()
    }
    table = found["rotary table"].n_bytes if "rotary table" in found else 0.0
    assert (found["weights"].n_bytes + table) * n_chips == pytest.approx(values["weight_bytes"], rel=1e-12)
    assert table == deployment.table_bytes
    assert found["KV cache"].n_bytes * n_chips == pytest.approx(values["kv_bytes"])
    activations = found["logits"].n_bytes + found["decode activations"].n_bytes
    assert activations * n_chips == pytest.approx(values["activation_bytes"], abs=1e-3)
    logits = 4 * batch * deployment.model.vocab_size if deployment.conventions.activations else 0
    assert found["logits"].n_bytes * n_chips == pytest.approx(logits)
    total = sum(line.n_bytes for line in found.values() if line.counted and line.name != "the engine keeps")
    assert total == pytest.approx(values["total_bytes_per_chip"])


@given(deployment=..., batch=BATCH)
def test_every_line_says_how_sure_it_is_and_why(deployment: Deployment, batch: int) -> None:
    lines = ledger_lines(deployment, batch)
    assert len(by_name(lines)) == len(lines)
    for line in lines:
        assert line.certainty in (EXACT, ESTIMATE, RANGE)
        assert (line.most_bytes > line.n_bytes) == (line.certainty == RANGE)
        assert line.why
        assert "\n" not in line.why
        assert line.to_dict()["n_bytes"] == line.n_bytes
    free = by_name(lines)["free"]
    assert (free.why == "DOES NOT FIT") == (free.n_bytes < 0)


@given(deployment=..., batch=BATCH)
def test_what_is_granted_is_no_more_than_what_is_usable(deployment: Deployment, batch: int) -> None:
    found = by_name(ledger_lines(deployment, batch))
    assert found["granted"].n_bytes == found["usable"].n_bytes * deployment.conventions.memory_fraction
    assert found["usable"].n_bytes == deployment.hbm_bytes_per_chip
    assert found["HBM as sold"].n_bytes == deployment.slice.chip.hbm_bytes


def test_a_chip_of_deepseek_v3_under_vllm() -> None:
    lines = by_name(slicewise.memory("deepseek-v3", slice="h200:8", engine="vllm", batch=8, context=4096).lines)
    # 83 to 84 GB of weights, a latent of 70,272 B a token on every rank, and a row of 64 for each of 163,840 positions.
    assert lines["weights"].n_bytes / 1e9 == pytest.approx(83.9, rel=0.02)
    assert lines["KV cache"].n_bytes == 8 * 4096 * 70_272
    assert "8 copies over the ranks" in lines["KV cache"].why
    assert lines["rotary table"].n_bytes == 163_840 * 64 * 2
    assert "as the checkpoint stores them, scales included" in lines["weights"].why
    # Logs show 2.8 to 9.1 GiB for such mixtures over eight ranks; graphs and buffers are part of it, not counted twice.
    kept = lines["the engine keeps"]
    assert (kept.n_bytes, kept.most_bytes) == pytest.approx((2.8 * GIB, 9.1 * GIB))
    assert (kept.certainty, kept.counted) == (RANGE, True)
    parts = [line for name, line in lines.items() if name.startswith("of what it keeps")]
    assert len(parts) == 3
    assert not any(line.counted for line in parts)
    assert lines["free"].certainty == ESTIMATE


def test_a_chip_of_a_dense_model_that_is_cut_evenly() -> None:
    lines = by_name(slicewise.memory("llama-3-70b", slice="h100:8", tp=8, batch=8, context=4096).lines)
    assert lines["weights"].why == "bf16"
    assert lines["KV cache"].why == "8 × 4,096 tokens, bf16"
    assert lines["logits"].n_bytes == 4 * 8 * 128_256 / 8
    assert lines["decode activations"].n_bytes == 2 * 2 * 8 * 28_672 / 8
    assert lines["usable"].why == "what the compiler or engines see"
    given_ = by_name(slicewise.memory("llama-3-70b", slice="h100:8", hbm="80GB").lines)
    assert (given_["usable"].n_bytes, given_["usable"].why) == (80e9, "as given by --hbm")
    book = by_name(slicewise.memory("llama-3-70b", slice="v5e:4x4", book=True).lines)
    assert (book["usable"].n_bytes, book["usable"].why) == (16e9, "nominal, as the book counts")


def test_a_pass_of_prefill_is_cut_over_the_tensor_ranks() -> None:
    for ranks, name in ((2, "in reserve: collectives' buffers"), (8, "in reserve: a pass of prefill")):
        lines = by_name(slicewise.memory("llama-3-70b", slice="h100:8", tp=ranks, dp=8 // ranks).lines)
        assert name in lines
        assert lines["in reserve: a pass of prefill"].n_bytes == 8192 * 2 * (2 * 8192 + 2 * 28_672 / ranks)


def test_a_pass_of_prefill_grows_with_the_tokens_of_a_batch() -> None:
    few, many = (
        by_name(slicewise.memory("llama-3-8b", slice="h100:1", engine="vllm", max_num_batched_tokens=n).lines)
        for n in (2048, 16_384)
    )
    name = "of what it keeps: a pass of prefill"
    assert many[name].n_bytes == 8 * few[name].n_bytes == 16_384 * 2 * (2 * 4096 + 2 * 14_336)
    assert many[name].most_bytes == 2 * many[name].n_bytes


def test_a_given_reserve_is_exact_and_counted() -> None:
    for words in ({"engine": "vllm"}, {}):
        found = slicewise.memory("llama-3-8b", slice="h100:1", reserve="2.1GiB", **words)
        line = by_name(found.lines)["the engine keeps"]
        assert (line.n_bytes, line.most_bytes, line.certainty) == (2.1 * GIB, 2.1 * GIB, EXACT)
        assert line.why == "as given by --reserve"
        bare = slicewise.memory("llama-3-8b", slice="h100:1", reserve="0GiB", **words)
        assert bare.ledger.free_bytes - found.ledger.free_bytes == pytest.approx(2.1 * GIB)


def test_without_an_engine_the_reserve_outside_the_fraction_is_said_to_be_for_its_needs() -> None:
    lines = by_name(slicewise.memory("llama-3-70b", slice="h100:8").lines)
    assert "the engine keeps" not in lines
    graphs_line = lines["in reserve: compiled graphs"]
    assert (graphs_line.n_bytes, graphs_line.most_bytes) == graphs()
    assert "in reserve: collectives' buffers" in lines
    assert "in reserve: collectives' buffers" not in by_name(slicewise.memory("llama-3-8b", slice="h100:1").lines)
    assert not any("graphs" in name for name in by_name(slicewise.memory("llama-3-8b", slice="v5e:2x4").lines))


def test_what_does_not_fit_says_so() -> None:
    found = slicewise.memory("llama-3-70b", slice="h100:1")
    free = by_name(found.lines)["free"]
    assert (free.why, found.fits) == ("DOES NOT FIT", False)
    assert free.n_bytes == found.ledger.free_bytes < 0


@given(deployment=..., batch=BATCH)
def test_every_line_is_derived(deployment: Deployment, batch: int) -> None:
    lines = ledger_lines(deployment, batch)
    for line in lines:
        found = line.explain(deployment, batch)
        assert found.value == pytest.approx(line.n_bytes, rel=1e-12)
        assert found.formula or found.origin
        most = line.explain(deployment, batch, most=True)
        assert most.value == pytest.approx(line.most_bytes, rel=1e-12)
        assert line_of(lines, f"{LEDGER_LINE}{line.name}") == (line, False)
        assert line_of(lines, f"{LEDGER_LINE}{line.name}{MOST}") == (line, True)


def test_a_line_that_is_not_there_is_told_apart() -> None:
    found = slicewise.memory("llama-3-8b", slice="v5e:2x2")
    assert found.explain("ledger:logits").value == found.ledger.explain("logit_bytes_per_chip").value
    assert "v5e" in found.explain("ledger:HBM as sold").origin
    assert found.explain("ledger:HBM as sold").source
    with pytest.raises(UnknownNameError, match="logits"):
        found.explain("ledger:logit")
