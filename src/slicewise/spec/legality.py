"""Which layouts an engine takes: what must divide, by the rules of vLLM, each refusal in a sentence with the fix.

A layout that breaks a rule is refused when the engine starts, however much memory there is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from slicewise.spec.arrays import Tensor
from slicewise.spec.mixers import Mixer
from slicewise.spec.model import Model
from slicewise.spec.quantisation import Scheme, sides
from slicewise.spec.ranks import Ranks, padded_vocab
from slicewise.spec.tensors import weight_tensors

CHIPS = "the degrees do not make up the chips"
STAGES = "more pipeline stages than layers"
EXPERTS = "the experts do not divide over the expert-parallel ranks"
HEADS = "the query heads do not divide over the tensor-parallel ranks"
KV_HEADS = "the KV heads neither divide over the tensor-parallel ranks nor divide them"
STATE_HEADS = "the heads of a recurrence do not divide over the tensor-parallel ranks"
WIDTH = "a feed-forward width does not divide over the ranks that cut it"
VOCABULARY = "the padded vocabulary does not divide over the tensor-parallel ranks"
BLOCK = "a rank's part of a quantised matrix cuts through blocks that share a scale"

_FEED_FORWARDS = {
    "mlp": "the dense feed-forward",
    "experts": "the experts' feed-forward",
    "shared_experts": "the shared experts' feed-forward",
}
_SIDES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a layout is refused.

    Attributes:
        rule: the rule, by which refusals are counted.
        detail: one sentence with the numbers and the fix.
    """

    rule: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """Something that a layout cuts.

    Attributes:
        what: its name, as a sentence has it beside its size.
        size: what is cut.
        units: parts that stay whole: heads of a matrix; 0 where there are none.
        block: elements that share a scale, and the dtype that they scale.
        n_experts: experts that it belongs to, which are cut their own number of ways; 0 for none.
    """

    rule: str
    what: str
    size: int
    units: int = 0
    block: int = 1
    dtype: str = ""
    n_experts: int = 0


def refusals(model: Model, ranks: Ranks, n_chips: int | None = None) -> tuple[Refusal, ...]:
    """Every reason that a layout is refused; none where it is legal.

    Blocks of scales are those of the model's checkpoint: give the model without its quantisation where weights of
    another dtype are planned. Newer versions of some engines pad what cuts through a block, and so take more.

    Args:
        model: what is divided.
        ranks: how.
        n_chips: chips that there are; None to take what the layout needs.

    Source: checks of vLLM when it makes a model's layers; blocks, vllm-project/vllm, pull requests 48173 and 39046
    """
    return _refusals(model, _cuts(model), ranks, n_chips)


def legal_layouts(
    model: Model,
    n_chips: int,
    *,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    ep: int | None = None,
) -> tuple[Ranks, ...]:
    """The legal layouts of a model on so many chips, most tensor-parallel first.

    Args:
        model: what is divided.
        n_chips: chips.
        tp: tensor ranks, where they are set.
        pp: pipeline stages, where they are set.
        dp: data-parallel groups, where they are set.
        ep: expert ranks, where they are set; each number of ways that there are otherwise.
    """
    cuts = _cuts(model)
    wanted = {"tp": tp, "pp": pp, "dp": dp, "ep": ep}
    return tuple(
        ranks
        for ranks in _layouts(n_chips, wanted)
        if ranks.pp <= model.n_layers
        and not _expert_faults(model, ranks)
        and not any(_fault(cut, ranks) for cut in cuts)
    )


def legal_tensor_ranks(model: Model, most: int) -> tuple[int, ...]:
    """Tensor-parallel sizes up to a most that cut a model legally, on as many chips."""
    cuts = _cuts(model)
    return tuple(tp for tp in range(1, most + 1) if not any(_fault(cut, Ranks(tp=tp)) for cut in cuts))


def _layouts(n_chips: int, wanted: Mapping[str, int | None]) -> Iterable[Ranks]:
    """Every way to make up the chips, or those with the degrees that are set."""
    divisors = _divisors(n_chips)
    open_to = {key: [ways for ways in divisors if degree in (None, ways)] for key, degree in wanted.items()}
    for tp, pp in itertools.product(reversed(open_to["tp"]), open_to["pp"]):
        dp, rest = divmod(n_chips, tp * pp)
        if rest == 0 and dp in open_to["dp"]:
            yield from (Ranks(tp=tp, pp=pp, dp=dp, ep=ep) for ep in open_to["ep"] if tp * dp % ep == 0)


def _divisors(n: int) -> list[int]:
    small = [ways for ways in range(1, math.isqrt(n) + 1) if n % ways == 0]
    return sorted({*small, *(n // ways for ways in small)})


def _refusals(model: Model, cuts: tuple[_Cut, ...], ranks: Ranks, n_chips: int | None) -> tuple[Refusal, ...]:
    found = []
    if n_chips is not None and ranks.n_chips != n_chips:
        missing = n_chips // (ranks.tp * ranks.pp)
        even = missing * ranks.tp * ranks.pp == n_chips
        fix = f"use dp {missing}" if even else f"use tp, pp and dp whose product is {n_chips}"
        detail = f"tp {ranks.tp} × pp {ranks.pp} × dp {ranks.dp} is {ranks.n_chips} chips, not {n_chips}; {fix}"
        found.append(Refusal(rule=CHIPS, detail=detail))
    if ranks.pp > model.n_layers:
        detail = f"pp {ranks.pp} is more than the {model.n_layers} layers; use pp {model.n_layers} or less"
        found.append(Refusal(rule=STAGES, detail=detail))
    found += [Refusal(rule=EXPERTS, detail=detail) for detail in _expert_faults(model, ranks)]
    faults = [(cut, fault) for cut in cuts if (fault := _fault(cut, ranks))]
    if faults:
        fix = _smaller(cuts, ranks)
        found += [Refusal(rule=cut.rule, detail=f"{fault}; {fix}{_or(cut, ranks)}") for cut, fault in faults]
    return tuple(found)


def _expert_faults(model: Model, ranks: Ranks) -> list[str]:
    if ranks.ep == 1:
        return []
    counts = sorted({feed.n_experts for feed in model.feed_forwards if feed.n_experts})
    if not counts:
        return [f"ep {ranks.ep} spreads experts, and {model.name} has none; use ep 1"]
    return [
        f"{count} experts do not divide over ep {ranks.ep}; use ep {math.gcd(count, ranks.ep)}"
        for count in counts
        if count % ranks.ep
    ]


def _cuts(model: Model) -> tuple[_Cut, ...]:
    """What layouts of a model cut, each kind once."""
    found: dict[_Cut, None] = {}
    for mixer in model.mixers:
        found |= dict.fromkeys(_head_cuts(mixer))
    tensors = weight_tensors(model)
    for tensor in tensors:
        if tensor.role in _FEED_FORWARDS and "ff" in tensor.axes:
            size = tensor.dims[tensor.axes.index("ff")][1]
            what = f"{_FEED_FORWARDS[tensor.role]} of"
            found[_Cut(rule=WIDTH, what=what, size=size, n_experts=tensor.n_experts)] = None
    padded = padded_vocab(model.vocab_size)
    what = "the vocabulary of" if padded == model.vocab_size else f"the vocabulary of {model.vocab_size:,} padded to"
    found[_Cut(rule=VOCABULARY, what=what, size=padded)] = None
    for tensor in tensors:
        found |= dict.fromkeys(_block_cuts(model, tensor))
    return tuple(found)


def _head_cuts(mixer: Mixer) -> Iterable[_Cut]:
    if not mixer.caches:
        return  # It attends to nothing: one matrix, which no engine cuts by heads.
    if not any(cache.head_dim for cache in mixer.caches):
        yield _Cut(rule=STATE_HEADS, what="heads of the state", size=mixer.n_heads)
        return
    yield _Cut(rule=HEADS, what="query heads", size=mixer.n_heads)
    yield _Cut(rule=KV_HEADS, what="KV heads", size=mixer.n_kv_heads)
    for tensor in mixer.weights:
        if "heads" in tensor.axes and tensor.units not in (0, mixer.n_heads):
            yield _Cut(rule=HEADS, what="groups of query heads", size=tensor.units)


def _block_cuts(model: Model, tensor: Tensor) -> Iterable[_Cut]:
    """The sides of a quantised matrix that are cut, where elements along them share a scale.

    Engines load the fused projections of queries, keys and values whatever their blocks, and kernels for 4-bit floats
    pad their narrow ones.
    """
    if model.quantisation is None or sides(tensor) < _SIDES or not {"heads", "ff"} & set(tensor.axes):
        return
    scheme_of = model.quantisation.scheme_of(tensor)
    schemes: dict[Scheme | None, None] = dict.fromkeys(scheme_of(layer) for layer in tensor.layers or (None,))
    (_, n_in), (_, n_out) = tensor.dims[-2:]
    for scheme in schemes:
        if scheme is None or scheme.dtype == "fp4":
            continue
        rows, columns = scheme.block
        if tensor.axes[-2] == "heads" and rows > 1:
            what = f"the input of {tensor.name},"
            yield _Cut(rule=BLOCK, what=what, size=n_in, units=tensor.units, block=rows, dtype=scheme.dtype)
        for axis, size, block in ((tensor.axes[-2], n_in, rows), (tensor.axes[-1], n_out, columns)):
            if axis == "ff" and block > 1:
                what, count = f"{_FEED_FORWARDS[tensor.role]} of", tensor.n_experts
                yield _Cut(rule=BLOCK, what=what, size=size, block=block, dtype=scheme.dtype, n_experts=count)


def _fault(cut: _Cut, ranks: Ranks) -> str:
    """What is wrong with a cut, in words with the numbers; "" where nothing is."""
    ways = ranks.expert_ways if cut.n_experts else ranks.tp
    spread = cut.n_experts and ranks.ep > 1
    over = f"tp {ways}" if ways == ranks.tp else f"the {ways} ranks of tp {ranks.tp} × dp {ranks.dp}"
    where = f"the {ways} ranks that ep {ranks.ep} leaves to an expert" if spread else over
    uneven = f"{cut.size:,} / {ways} = {cut.size / ways:,.6g}"
    if cut.rule == BLOCK:
        return _block_fault(cut, ways, where)
    if cut.size % ways == 0 or (cut.rule == KV_HEADS and ways % cut.size == 0):
        return ""
    if cut.rule == KV_HEADS:
        return f"{cut.size} KV heads neither divide over tp {ways} nor divide it, so no even copies can be kept"
    if cut.rule in (HEADS, STATE_HEADS):
        return f"{cut.size} {cut.what} do not divide over {where} ({uneven})"
    return f"{cut.what} {cut.size:,} does not divide over {where} ({uneven})"


def _block_fault(cut: _Cut, ways: int, where: str) -> str:
    parts = cut.units or cut.size
    if ways == 1 or (parts % ways and ways % parts):
        return ""  # Not cut, or refused already for its heads or its width.
    width = -(-parts // ways) * cut.size // parts
    if width % cut.block == 0:
        return ""
    return (
        f"{cut.what} {cut.size:,} over {where} is {width:,} a rank, which cuts through the blocks of {cut.block}"
        f" that share a scale in the {cut.dtype} checkpoint"
    )


def _smaller(cuts: tuple[_Cut, ...], ranks: Ranks) -> str:
    """The fix that leaves most tensor-parallel: the largest legal divisor of tp, with experts spread as they can be."""
    tried = [(tp, math.gcd(ranks.ep, tp * ranks.dp)) for tp in reversed(_divisors(ranks.tp))]
    tried += [(tp, ep) for tp, _ in tried for ep in _divisors(tp * ranks.dp)]
    for tp, ep in tried:
        if _spreads(cuts, ep) and not any(_fault(cut, replace(ranks, tp=tp, ep=ep)) for cut in cuts):
            return f"use tp {tp}" if ep == ranks.ep else f"use tp {tp} with ep {ep}"
    return "use tp 1 with dp 1"


def _spreads(cuts: tuple[_Cut, ...], ep: int) -> bool:
    """Whether whole experts can be spread so many ways."""
    counts = {cut.n_experts for cut in cuts if cut.n_experts}
    return ep == 1 or (bool(counts) and all(count % ep == 0 for count in counts))


def _or(cut: _Cut, ranks: Ranks) -> str:
    """What else would do: experts spread whole, and engines that pad."""
    whole = cut.n_experts and cut.n_experts % ranks.stage_chips == 0
    other = f", or ep {ranks.stage_chips}, which spreads whole experts" if whole else ""
    return f"{other} (newer versions of some engines pad instead)" if cut.rule == BLOCK else other
