"""The document of `disaggregate`."""

from __future__ import annotations

from slicewise.planner.disaggregate import Disaggregation
from slicewise.report.document import Block, Document, Heading, Line, Table
from slicewise.report.views.expected import figures_table
from slicewise.report.views.words import assumed, ms
from slicewise.units import show


def disaggregate_document(found: Disaggregation) -> Document:
    """The ratio of servers, the hand-off, and whether to split."""
    where = f"{found.model}: prefill on {found.prefill_slice}, decode on {found.slice} at batch {found.batch:,}"
    if not found.fits:
        return [Heading(f"{where}: does not fit, or misses the limits"), Line(f"{found.reason}.")]
    rows = [
        ["prefill, of the slice's time", f"{found.prompt_tokens:,} tokens", ms(found.prefill_s)],
        ["decode step", f"batch {found.batch:,}", ms(found.step_s)],
        ["prompts a prefill server takes", "", f"{show(found.prefill_requests_per_s, '', 4)} /s"],
        ["requests a decode server finishes", "", f"{show(found.decode_requests_per_s, '', 4)} /s"],
        ["sequences finished a step", "B / G", show(found.sequences_finished_per_step, "", 4)],
        ["tokens leaving the cache a step", "B (T + G) / G", show(found.tokens_evicted_per_step, "", 4)],
        ["hand-off of one cache", show(found.handoff_bytes, "B"), ms(found.handoff_s)],
        ["prefill and hand-off (TTFT)", "", ms(found.ttft_split_s)],
        ["mean time a token, phases shared", "", ms(found.tpot_shared_s)],
    ]
    blocks: list[Block] = [
        Heading(
            f"{where}: {show(found.prefill_servers_per_decode_server, '', 4)} prefill servers per decode server"
            f" ({_kind(found)})"
        ),
        Line(f"Split? {found.why}."),
    ]
    if found.prefill_servers is not None:
        many = "" if found.decode_servers == 1 else "s"
        servers = f"{found.prefill_servers:,} prefill and {found.decode_servers:,} decode server{many}"
        blocks.append(Line(f"For the rate asked: {servers}."))
    told = [figures_table(found.figures)] if found.figures else []
    return [*blocks, Table("Flow", ["", "", "value"], rows, left=(0, 1)), *told, assumed(found.assumptions)]


def _kind(found: Disaggregation) -> str:
    """What the times are that the ratio follows from."""
    return "expected" if found.decode.view == "expected" else f"by bounds, prefill at {found.prefill.mfu:.0%} of peak"
