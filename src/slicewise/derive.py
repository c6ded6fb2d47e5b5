"""Wires formulas by name, evaluates them on grids, and replays one point as a derivation.

A formula is a plain function whose parameters are named after other formulas or inputs. Evaluating walks those names;
explaining walks them again at one point and reads each function's signature, docstring and source. This is the only
clever file. It knows nothing of models, chips or units beyond the units that names end in.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from slicewise.errors import UnknownFactError, UnknownNameError
from slicewise.units import plain, show, unit_of

Values = dict[str, Any]
Origins = Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Formula:
    """A function read as a formula."""

    name: str
    function: Callable[..., Any]

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the formulas and inputs that it needs."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    @property
    def computed_by(self) -> str:
        """The dotted name of the function."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @cached_property
    def meaning(self) -> str:
        """The first line of the docstring, without its unit."""
        first = (inspect.getdoc(self.function) or "").split("\n")[0]
        return first.rsplit("[", 1)[0].strip().rstrip(".")

    @cached_property
    def unit(self) -> str:
        """The unit that the first line of the docstring ends in."""
        first = (inspect.getdoc(self.function) or "").split("\n")[0]
        return first.rsplit("[", 1)[1].rstrip("]. ") if first.endswith("]") else unit_of(self.name)

    @cached_property
    def notes(self) -> str:
        """The docstring below its first line: derivation, what is neglected, source keys."""
        return "\n".join((inspect.getdoc(self.function) or "").split("\n")[1:]).strip()

    @cached_property
    def expression(self) -> ast.expr:
        """What the function returns, with its local names and the formulas that it calls put in."""
        return _returned(self.function)

    @cached_property
    def text(self) -> str:
        """The formula as people write it."""
        return _write(self.expression)

    def text_with(self, values: Mapping[str, Any], words: Mapping[str, str]) -> str:
        """The formula with numbers put in.

        Args:
            values: the parameters' values; sums over structures are written out term by term.
            words: the parameters' values as people read them.
        """
        scope = _scope(self.function)
        numbers = {name: show(scope[name]) for name in _names(self.expression) if _is_number(scope.get(name))}
        spelled = _Spell(values, scope, self.unit).visit(copy.deepcopy(self.expression))
        return _write(_Put({name: ast.Name(id=word) for name, word in {**numbers, **words}.items()}).visit(spelled))


def _scope(function: Callable[..., Any]) -> dict[str, Any]:
    """The names that a function sees, after those that the functions see which it calls."""
    own = function.__globals__
    called = (own.get(name) for name in function.__code__.co_names)
    found: dict[str, Any] = {}
    for each in called:
        if inspect.isfunction(each):
            found |= each.__globals__
    return found | own


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _returned(function: Callable[..., Any]) -> ast.expr:
    """The expression that a function returns, its local names put in."""
    body = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0].body  # type: ignore[attr-defined]
    local: dict[str, ast.expr] = {}
    for statement in body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            local[statement.targets[0].id] = _Put(local).visit(statement.value)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            found: ast.expr = _Inline(function.__globals__).visit(_Put(local).visit(statement.value))
            return found
    message = f"{function.__qualname__} is not a formula: it has no plain return"
    raise TypeError(message)


class _Put(ast.NodeTransformer):
    """Puts expressions or words in for names."""

    def __init__(self, replacements: Mapping[str, ast.expr]) -> None:
        self.replacements = replacements

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self.replacements.get(node.id)
        return node if found is None else copy.deepcopy(found)


class _Inline(ast.NodeTransformer):
    """Puts the body of a formula in for a call to it, except under a sum over structures."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self.scope = scope

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = self.scope.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if not inspect.isfunction(called):
            return node
        arguments = dict(zip(Formula("", called).parameters, node.args, strict=True))
        body: ast.AST = _Put(arguments).visit(_returned(called))
        return body


class _Spell(ast.NodeTransformer):
    """Writes a sum, least or greatest over a structure out, term by term."""

    _JOIN: ClassVar[dict[str, str]] = {"sum": " + ", "min": ", ", "max": ", "}

    def __init__(self, values: Mapping[str, Any], scope: Mapping[str, Any], unit: str) -> None:
        self.values, self.scope, self.unit = values, scope, unit

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in self.values:
            return ast.Name(id=show_value(getattr(self.values[node.value.id], node.attr), unit_of(node.attr)))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func).removeprefix("np.")
        if name not in self._JOIN or not isinstance(node.args[0], ast.GeneratorExp | ast.ListComp):
            return node
        terms = [*map(ast.unparse, _initial(node)), *self._terms(node.args[0])]
        joined = self._JOIN[name].join(terms) or "0"
        return ast.Name(id=f"({joined})" if name == "sum" else f"{name}({joined})")

    def _terms(self, node: ast.GeneratorExp | ast.ListComp) -> list[str]:
        loop = node.generators[0]
        source, target = ast.unparse(loop.iter), ast.unparse(loop.target)
        named = unit_of(ast.unparse(node.elt).split("(")[0])
        # A term of several factors has the unit of the formula; a count has none.
        unit = self.unit if isinstance(node.elt, ast.BinOp) else named
        terms = []
        for item in self.values[source]:
            scope = {**self.scope, **self.values, target: item}
            if all(_evaluate(test, scope) for test in loop.ifs):
                terms.append(show(_evaluate(node.elt, scope), unit))
        return terms


def _evaluate(expression: ast.expr, scope: dict[str, Any]) -> Any:
    code = compile(ast.fix_missing_locations(ast.Expression(copy.deepcopy(expression))), "<formula>", "eval")
    return eval(code, scope)  # noqa: S307 - the package's own formula, at the values that it was computed with


class _Plain(ast.NodeTransformer):
    """Rewrites numpy calls as the mathematics that they are."""

    _NAMES: ClassVar[dict[str, str]] = {"maximum": "max", "minimum": "min"}

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        is_numpy = isinstance(node.value, ast.Name) and node.value.id == "np"
        return ast.Name(id=self._NAMES.get(node.attr, node.attr)) if is_numpy else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "where":
            test, then, other = node.args
            return ast.IfExp(test=test, body=then, orelse=other)
        if isinstance(node.func, ast.Name) and node.func.id == "asarray":
            return node.args[0]
        if node.args and isinstance(node.args[0], ast.ListComp):
            # The greatest of several arrays, point by point.
            terms = ast.GeneratorExp(elt=node.args[0].elt, generators=node.args[0].generators)
            return ast.Call(func=node.func, args=[*_initial(node), ast.Starred(value=terms)], keywords=[])
        if len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.GeneratorExp):
            # A lone generator needs no brackets of its own.
            node.args[0] = ast.Name(id=ast.unparse(node.args[0])[1:-1])
        elif isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
            node.args = [inner for arg in node.args for inner in _same(arg, node.func.id)]
        return node


def _initial(node: ast.Call) -> list[ast.expr]:
    """What the least or greatest of an array starts from."""
    return [keyword.value for keyword in node.keywords if keyword.arg == "initial"]


def _same(node: ast.expr, name: str) -> list[ast.expr]:
    """The arguments of a nested call of the same name: max(max(a, b), c) reads max(a, b, c)."""
    nested = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    return node.args if nested and isinstance(node, ast.Call) and not node.keywords else [node]


def _write(expression: ast.expr) -> str:
    text = ast.unparse(ast.fix_missing_locations(_Plain().visit(copy.deepcopy(expression))))
    return text.replace(" * ", " × ")


@dataclass(frozen=True, kw_only=True)
class Derivation:
    """How one number came about.

    Attributes:
        name: the quantity, with its unit at the end of the name.
        value: its number (base unit), or a structure such as a list of tensors.
        unit: base unit, "" for a count.
        meaning: what it is, in the field's words.
        formula: the formula in names; "" for a fact.
        numbers: the formula with numbers put in; "" for a fact.
        computed_by: dotted name of the function; "" for a fact.
        origin: for a fact, the figure as printed, or the words that set it.
        source: for a fact, the document it was read from; "" where none is known.
        parts: the derivations that it rests on, each name once in the whole tree.
        seen: it was derived further up, and is not repeated.
    """

    name: str
    value: Any
    unit: str
    meaning: str = ""
    formula: str = ""
    numbers: str = ""
    computed_by: str = ""
    origin: str = ""
    source: str = ""
    parts: tuple[Derivation, ...] = ()
    seen: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The derivation as JSON-ready data."""
        found: dict[str, Any] = {"name": self.name, "value": _plain_value(self.value), "unit": self.unit}
        told = isinstance(self.value, tuple | list)  # a list's origin is the list itself, in lines
        for key in ("meaning", "formula", "numbers", "computed_by", "source", *(() if told else ("origin",))):
            if getattr(self, key):
                found[key] = getattr(self, key)
        if self.parts:
            found["parts"] = [part.to_dict() for part in self.parts]
        return found


def _plain_value(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [str(item) for item in value]
    value = plain(value)
    return value if isinstance(value, int | float | str | type(None)) else str(value)


@dataclass(frozen=True)
class Graph:
    """Formulas by the name of the quantity that each computes.

    A name may be served by a function of another name: conventions swap functions, never branch inside one.
    """

    formulas: Mapping[str, Formula]

    @classmethod
    def of(cls, functions: Mapping[str, Callable[..., Any]]) -> Graph:
        """The graph of functions keyed by the quantity that they compute."""
        return cls({name: Formula(name, function) for name, function in functions.items()})

    def evaluate(self, names: Iterable[str], inputs: Mapping[str, Any]) -> Values:
        """Compute the named quantities.

        Inputs are floats or arrays that broadcast together; an input wins over a formula of its name.

        Raises:
            UnknownNameError: a name is neither a formula nor an input.
            UnknownFactError: an input that a formula needs is None.
        """
        known: Values = dict(inputs)
        for name in names:
            self._fill(name, known)
        return {name: known[name] for name in names}

    def _fill(self, name: str, known: Values) -> Any:
        if name in known:
            return known[name]
        formula = self.formulas.get(name)
        if formula is None:
            raise UnknownNameError("number", name, [*self.formulas, *known], "(--json prints the names)")
        values = [self._fill(parameter, known) for parameter in formula.parameters]
        try:
            known[name] = formula.function(*values)
        except TypeError:
            for parameter, value in zip(formula.parameters, values, strict=True):
                if value is None:
                    raise UnknownFactError(name, parameter) from None
            raise
        return known[name]

    def rests_on(self, name: str, quantity: str, inputs: Mapping[str, Any]) -> bool:
        """Whether a quantity is computed from another one. An input rests on nothing."""
        if name == quantity:
            return True
        if name in inputs or name not in self.formulas:
            return False
        return any(self.rests_on(parameter, quantity, inputs) for parameter in self.formulas[name].parameters)

    def explain(self, name: str, inputs: Mapping[str, Any], origins: Origins) -> Derivation:
        """Replay one quantity at one point.

        Args:
            name: the quantity.
            inputs: scalars and structures of that point.
            origins: where each input comes from: its words, and its document.

        Raises:
            UnknownNameError: the name is neither a formula nor an input.
            UnknownFactError: it is, or rests on, an input that is None.
        """
        known: Values = dict(inputs)
        if self._fill(name, known) is None:
            raise UnknownFactError(name, name)
        return self._replay(name, known, inputs, origins, set())

    def _replay(
        self, name: str, known: Values, inputs: Mapping[str, Any], origins: Origins, seen: set[str]
    ) -> Derivation:
        value, formula = known[name], self.formulas.get(name)
        if name in inputs or formula is None:
            origin, source = origins.get(name, ("", ""))
            return Derivation(name=name, value=value, unit=unit_of(name), origin=origin, source=source)
        if name in seen:
            return Derivation(name=name, value=value, unit=formula.unit, seen=True)
        seen.add(name)
        words = {p: show_value(known[p], self._unit(p)) for p in formula.parameters}
        return Derivation(
            name=name,
            value=value,
            unit=formula.unit,
            meaning=formula.meaning,
            formula=formula.text,
            numbers=formula.text_with({p: known[p] for p in formula.parameters}, words),
            computed_by=formula.computed_by,
            parts=tuple(self._replay(p, known, inputs, origins, seen) for p in formula.parameters),
        )

    def _unit(self, name: str) -> str:
        return self.formulas[name].unit if name in self.formulas else unit_of(name)


_FEW = 12
"""Numbers of a list that are printed one by one."""


def show_value(value: Any, unit: str) -> str:
    """A number for people; a structure by the name of its kind."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple | list):
        if 0 < len(value) <= _FEW and all(map(_is_number, value)):
            return f"({', '.join(show(each, unit) for each in value)})"
        return f"[{len(value)} {type(value[0]).__name__.lower()}s]" if value else "[none]"
    if value is None or (np.ndim(value) == 0 and isinstance(value, int | float | np.generic | np.ndarray)):
        return show(None if value is None else float(value), unit)
    return f"[{value}]"
