"""Derivations of the closed form: a number of it from the formulas, on the servers that it is of."""

from __future__ import annotations

from slicewise.derive import Derivation
from slicewise.errors import InputError
from slicewise.traffic.design import Design
from slicewise.traffic.planned import receiving
from slicewise.traffic.requests import Requests
from slicewise.traffic.steady import Steady, at_means

_SHARED = {"ttft_s": "prefill_s", "tpot_s": "tpot_shared_s", "servers": "replicas"}
_SPLIT = {"ttft_s": "ttft_split_s", "tpot_s": "step_s", "servers": "decode_servers"}
"""The formulas that numbers of `Steady` are the results of, by its names."""
_SENT = ("handoff_bytes_per_s", "handoff_s", "ttft_split_s")


def derivation_of(design: Design, requests: Requests, name: str, batch: float) -> Derivation:
    """The derivation of a number at the mean lengths of some requests.

    Args:
        design: the servers.
        requests: the load.
        name: a formula's, or a number's of `Steady`; those of prefill and hand-off are of the prefill servers.
        batch: sequences that decode at once; servers are counted by the most that do.

    Raises:
        InputError: the number is put together from results of formulas.
        UnknownNameError: no such number.
    """
    decode = at_means(design.deployment, requests)
    prompt = None if design.prefill is None else at_means(design.prefill, requests)
    found = (_SHARED if prompt is None else _SPLIT).get(name, name)
    if found == name and name in Steady.__dataclass_fields__ and name not in ("prefill_servers", "batch"):
        raise InputError(f"{name} is put together from several results; explain ttft_s, tpot_s, servers or step_s")
    if prompt is not None and found in _SENT:
        words = {"handoff_receive_bytes_per_s": (f"what {decode.slice.name} takes in", "")}
        return prompt.explain(found, words, **receiving(decode))
    if found.startswith("prefill_"):
        # Prefill is of one prompt, whatever the batch.
        return (prompt or decode).explain(found, batch=1)
    if name == "servers":
        batch = min(design.policy.max_num_seqs, int(decode.value("max_batch")))
    return decode.explain(found, batch=batch)
