"""A question in people's words, read into specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from slicewise.catalog.efficiency import read_efficiency
from slicewise.catalog.load import chips as all_chips
from slicewise.catalog.load import find_chip, load_model
from slicewise.catalog.slices import load_slice, standard_slices
from slicewise.errors import InputError, UnknownNameError
from slicewise.planner.conventions import CHOICES, Conventions, conventions
from slicewise.planner.deployment import Deployment
from slicewise.planner.engines import ENGINES, TPU_INFERENCE, Engine, engine_named
from slicewise.planner.flags import (
    DEFAULT_CHIP,
    DEFAULT_ISL,
    DEFAULT_MFU,
    DEFAULT_OSL,
    OBJECTIVES,
    PEAK_MFU,
    Flags,
    Quantity,
    Words,
    dtypes,
    fraction,
    listed,
    param_count,
    positive,
    prices_of,
    size,
    truth,
    workload,
)
from slicewise.planner.layouts import DEGREES, AskedLayout, checked, layouts, refusal
from slicewise.planner.reserve import reserve
from slicewise.spec.chip import Price
from slicewise.spec.efficiency import Efficiency, Scale
from slicewise.spec.model import Model
from slicewise.spec.precision import Precision
from slicewise.spec.ranks import Ranks
from slicewise.spec.topology import Slice
from slicewise.spec.workload import Limits, Workload
from slicewise.units import parse_count


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, read.

    Attributes:
        slices: the slices that were named, or every standard slice of the chips.
        slice_is_given: slices were named.
        batch: sequences in a decode step; None for the planner's choice or the largest that fits.
        prices: quote by chip name; chips without one are missing.
        asked_layout: degrees of parallelism that were given.
        engine: whose log and limits to speak; None for none.
        efficiencies: fits of the user's own file; empty for those that ship.
        mfu_is_given: the FLOPs utilisation in prefill was asked for.
    """

    model: Model
    slices: tuple[Slice, ...]
    slice_is_given: bool
    precisions: tuple[Precision, ...]
    workload: Workload
    limits: Limits
    conventions: Conventions
    objective: str
    mfu: float
    prices: Mapping[str, Price]
    params: float | None
    batch: int | None
    rate: float | None
    handoff_bytes_per_s: float | None
    asked_layout: AskedLayout
    engine: Engine | None
    reserve_is_given: bool
    efficiencies: tuple[Efficiency | Scale, ...] = ()
    mfu_is_given: bool = False

    def layouts(self, slice_: Slice, precision: Precision | None = None) -> tuple[Ranks | None, ...]:
        """The layouts to try on a slice; empty where none of what was asked for is legal there."""
        return layouts(self.model, slice_, precision or self.precisions[0], self.asked_layout)

    def refusal(self, slice_: Slice, precision: Precision) -> str:
        """Why nothing of what was asked for is legal on a slice, with what is."""
        return refusal(self.model, slice_, precision, self.asked_layout)

    def deployments(self, slice_: Slice, precision: Precision | None = None) -> tuple[Deployment, ...]:
        """The model on one slice at one precision, in every layout to try."""
        return tuple(self._deployment(slice_, precision, ranks) for ranks in self.layouts(slice_, precision))

    def deployment(self, slice_: Slice | None = None, precision: Precision | None = None) -> Deployment:
        """The model on one slice at one precision, in the plainest layout; by default the first of each.

        Raises:
            InputError: none of what was asked for is legal there.
        """
        chosen_slice, chosen_precision = slice_ or self.slices[0], precision or self.precisions[0]
        tried = self.layouts(chosen_slice, chosen_precision)
        if not tried:
            raise InputError(self.refusal(chosen_slice, chosen_precision))
        return self._deployment(chosen_slice, chosen_precision, tried[0])

    def _counted(self, ranks: Ranks | None) -> Conventions:
        """The conventions, with what the engine keeps of a chip where nothing else was said."""
        if self.engine is None or self.reserve_is_given:
            return self.conventions
        kept = reserve(self.engine, self.model, ranks).typical_bytes
        return replace(self.conventions, reserve_bytes_per_chip=kept)

    def _deployment(self, slice_: Slice, precision: Precision | None, ranks: Ranks | None) -> Deployment:
        return Deployment(
            model=self.model,
            slice=slice_,
            precision=precision or self.precisions[0],
            ranks=ranks,
            engine=self.engine,
            workload=self.workload,
            conventions=self._counted(ranks),
            mfu=self.mfu,
            price=self.prices.get(slice_.chip.name),
            params=self.params,
            handoff_bytes_per_s=self.handoff_bytes_per_s,
            requests_per_s=self.rate,
            efficiencies=self.efficiencies,
            mfu_is_given=self.mfu_is_given,
        )


def ask(model: str | Path | Model, flags: Flags) -> Question:
    """Read a question.

    Raises:
        InputError: a word is off; the message names the flag and the fix.
    """
    known_words(flags)
    spec = load_model(model)
    counted = conventions(
        book=truth(flags.get("book"), "--book"),
        ici=flags.get("ici"),
        split=flags.get("split"),
        kv_split=flags.get("kv_split"),
        view=flags.get("view"),
        memory_fraction=fraction(flags.get("memory_fraction"), "--memory-fraction"),
        hbm_bytes_per_chip=positive(flags.get("hbm"), "B", "--hbm"),
        reserve_bytes_per_chip=size(flags.get("reserve"), "--reserve"),
    )
    slices, is_given = _slices(flags)
    objective = "cost" if flags.get("objective") is None else str(flags.get("objective"))
    if objective not in OBJECTIVES:
        raise InputError(f"--objective '{objective}' is not offered; choose {', '.join(OBJECTIVES)}")
    batch, mfu = flags.get("batch"), fraction(flags.get("mfu"), "--mfu")
    precisions, engine = _precisions(spec, flags), _engine(flags.get("engine"))
    degrees = {
        name: parse_count(flags[name], f"--{name}", "ranks")  # type: ignore[literal-required]
        for name in DEGREES
        if flags.get(name) is not None
    }
    asked = AskedLayout(degrees=degrees, by_ranks=engine is not None)
    if asked.is_given and flags.get("kv_split") is not None:
        raise InputError(
            "--kv-split is of the even cut; leave it out with ranks or an engine, which copy over tp and split over dp"
        )
    _engine_suits(engine, slices)
    checked(spec, slices, precisions[0], asked)
    return Question(
        model=spec,
        slices=slices,
        slice_is_given=is_given,
        precisions=precisions,
        asked_layout=asked,
        engine=engine,
        reserve_is_given=flags.get("reserve") is not None,
        workload=workload(flags, prompt_is_context=counted.prompt_is_context),
        limits=Limits(
            tpot_s=positive(flags.get("tpot"), "s", "--tpot"), ttft_s=positive(flags.get("ttft"), "s", "--ttft")
        ),
        conventions=counted,
        objective=objective,
        mfu=mfu or (PEAK_MFU if counted.view == "expected" else DEFAULT_MFU),
        mfu_is_given=mfu is not None,
        efficiencies=efficiencies(flags.get("efficiency"), [s.chip.name for s in slices], is_book=counted.book),
        prices=prices_of(flags.get("price"), [s.chip.name for s in slices]),
        params=param_count(spec, flags.get("params"), asked),
        batch=None if batch is None else parse_count(batch, "--batch", "sequences"),
        rate=positive(flags.get("rate"), "request/s", "--rate"),
        handoff_bytes_per_s=positive(flags.get("network"), "B/s", "--network"),
    )


def chosen_by(flags: Flags) -> Flags:
    """The words with the view that a plan is chosen by: what is expected, but under the book's conventions."""
    if flags.get("view") is not None or flags.get("book"):
        return flags
    return {**flags, "view": "expected"}


def known_words(flags: Flags) -> None:
    """Refuse a word that is no flag: an answer that left it out would be a wrong one.

    Raises:
        UnknownNameError: a word is no flag.
    """
    known = Flags.__annotations__
    for word in flags:
        if word not in known:
            raise UnknownNameError("word", word, known, "(the words are the command line's flags)")


def _slices(flags: Flags) -> tuple[tuple[Slice, ...], bool]:
    named = listed(flags.get("slice"))
    chips = [find_chip(str(name)) for name in listed(flags.get("chip"))]
    if named:
        slices = tuple({slice_.name: slice_ for slice_ in map(_slice, named)}.values())
        strays = [slice_.name for slice_ in slices if chips and slice_.chip.name not in {chip.name for chip in chips}]
        if strays:
            raise InputError(f"--slice {strays[0]} is of another chip than --chip; leave --chip out")
        return slices, True
    chips = chips or [find_chip(DEFAULT_CHIP)]
    return tuple(
        s for chip in dict.fromkeys(chip.name for chip in chips) for s in standard_slices(all_chips()[chip])
    ), False


def _slice(name: object) -> Slice:
    return load_slice(name)  # type: ignore[arg-type]  # what is no name is refused there


def _precisions(model: Model, flags: Flags) -> tuple[Precision, ...]:
    default, quantised = model.checkpoint_dtype, model.quantisation
    activations = "bf16" if default == "fp32" else default
    weights = dtypes(flags.get("weights"), "--weights")
    caches = dtypes(flags.get("kv"), "--kv") or [(quantised and quantised.kv_dtype) or activations]
    computes = dtypes(flags.get("compute"), "--compute") or [activations]
    if not weights and (quantised or model.checkpoint_bytes is not None):
        stored = quantised.dtype if quantised else default
        return tuple(Precision(weights=stored, kv=k, compute=c, as_stored=True) for k, c in product(caches, computes))
    return tuple(Precision(weights=w, kv=k, compute=c) for w, k, c in product(weights or [default], caches, computes))


def _engine(value: object) -> Engine | None:
    return None if value is None else engine_named(str(value).strip().lower()[:40])


def efficiencies(path: object, chip_names: Sequence[str], *, is_book: bool) -> tuple[Efficiency | Scale, ...]:
    """The fits of the user's file, of which at least one is of a chip that is asked about.

    Args:
        path: the file; None for none.
        chip_names: the chips of the question.
        is_book: the book's conventions were asked for.

    Raises:
        InputError: it cannot be read, has none of the chips, or stands beside the book's conventions.
    """
    if path is None:
        return ()
    if is_book:
        raise InputError("--book shows bounds only; leave out --efficiency, or --book")
    found = read_efficiency(str(path))
    measured = dict.fromkeys(chip for fit in found for chip in fit.chips)
    asked = dict.fromkeys(chip_names)
    if not measured.keys() & asked.keys():
        raise InputError(
            f"--efficiency {path} is of {', '.join(measured) or 'no chip'}, and {', '.join(asked)} is asked about;"
            " leave it out, or give measurements of that chip to slicewise calibrate"
        )
    return found


def _engine_suits(engine: Engine | None, slices: tuple[Slice, ...]) -> None:
    if engine is None:
        return
    for slice_ in slices:
        if slice_.chip.is_gpu and engine.name == TPU_INFERENCE:
            raise InputError(f"--engine {engine.name} runs on TPUs, and {slice_.name} is none; give vllm or sglang")
        if slice_.chip.devices_per_chip > 1:
            raise InputError(
                f"--engine {engine.name} sees {slice_.chip.devices_per_chip} devices in a chip of {slice_.chip.name},"
                " and layouts over devices are not described yet; leave --engine out"
            )
        if not slice_.chip.is_gpu and engine.name != TPU_INFERENCE:
            raise InputError(
                f"--engine {engine.name}: on TPUs such as {slice_.name} give tpu-inference, vLLM's engine there"
            )


__all__ = [
    "CHOICES",
    "DEFAULT_CHIP",
    "DEFAULT_ISL",
    "DEFAULT_OSL",
    "ENGINES",
    "OBJECTIVES",
    "Flags",
    "Quantity",
    "Question",
    "Words",
    "ask",
    "chosen_by",
    "dtypes",
    "efficiencies",
    "known_words",
    "listed",
    "prices_of",
    "workload",
]
