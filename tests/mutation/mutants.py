"""Small, plausible mistakes for a sample of places in the source, made with cosmic-ray's operators and three more."""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.exceptions import CosmicRayTestingException
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators import (
    binary_operator_replacement,
    boolean_replacer,
    break_continue,
    comparison_operator_replacement,
    number_replacer,
    zero_iteration_for_loop,
)
from cosmic_ray.operators.operator import Operator
from parso.python.tree import Keyword, Name

_ARITHMETIC = ("_Add_Sub", "_Sub_Add", "_Mul_Add", "_Div_Mul", "_Mod_Add", "_FloorDiv_Mul")
_LOGGING = ("_log.", "_logger.", "logging.", "self.log.")


class LeaveOut(Operator):  # type: ignore[misc]
    """Replaces a statement by ``pass``: calls, raises, deletions, and what is written to an attribute or an item."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "simple_stmt" and _is_worth_leaving_out(node):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        leaf = node.children[0].get_first_leaf()
        node.children[0] = Keyword("pass", leaf.start_pos, prefix=leaf.prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class CatchOneLess(Operator):  # type: ignore[misc]
    """One exception of an ``except`` is no longer caught; cosmic-ray's own operator stumbles over dotted names."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        for _, caught in _caught(node):
            yield caught.start_pos, caught.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        parent, caught = _caught(node)[index]
        leaf = caught.get_first_leaf()
        name = CosmicRayTestingException.__name__
        parent.children[parent.children.index(caught)] = Name(name, leaf.start_pos, prefix=leaf.prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class SwapAllAndAny(Operator):  # type: ignore[misc]
    """``all`` → ``any``, ``min`` → ``max``, and the other way round."""

    _other = {"all": "any", "any": "all", "min": "max", "max": "min"}  # noqa: RUF012

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "name" and node.value in self._other and (leaf := node.get_next_leaf()) and leaf.value == "(":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = self._other[node.value]
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake: an operator applied to one of the places of a module that it fits."""

    module: Path
    line: int
    column: int
    operator: str
    occurrence: int

    def code(self) -> str | None:
        """The module's text with the mistake in it, None if that is no Python."""
        code = mutate_code(self.module.read_text(encoding="utf-8"), _operators()[self.operator], self.occurrence)
        try:
            ast.parse(code or "")
        except SyntaxError:
            return None
        return str(code) if code else None


def sample(modules: list[Path], size: int, seed: int) -> list[Mutant]:
    """``size`` mutants at as many places, the same ones for the same source and seed."""
    places: dict[tuple[Path, int, int], list[Mutant]] = defaultdict(list)
    for module in modules:
        for mutant in _all_of(module):
            places[module, mutant.line, mutant.column].append(mutant)
    chance = random.Random(seed)
    order = sorted(places)
    chance.shuffle(order)
    found: list[Mutant] = []
    for place in order:
        mutant = chance.choice(places[place])
        if len(found) < size and mutant.code() is not None:
            found.append(mutant)
    return found


def _operators() -> dict[str, Operator]:
    classes = [
        *comparison_operator_replacement.operators(),
        *(each for each in binary_operator_replacement.operators() if each.__name__.endswith(_ARITHMETIC)),
        boolean_replacer.AddNot,
        boolean_replacer.ReplaceTrueWithFalse,
        boolean_replacer.ReplaceFalseWithTrue,
        boolean_replacer.ReplaceAndWithOr,
        boolean_replacer.ReplaceOrWithAnd,
        break_continue.ReplaceBreakWithContinue,
        break_continue.ReplaceContinueWithBreak,
        CatchOneLess,
        number_replacer.NumberReplacer,
        zero_iteration_for_loop.ZeroIterationForLoop,
        LeaveOut,
        SwapAllAndAny,
    ]
    return {each.__name__: each() for each in classes}


def _all_of(module: Path) -> Iterator[Mutant]:
    nodes = list(ast_nodes(get_ast(module.read_text(encoding="utf-8"))))
    for name, operator in _operators().items():
        occurrence = 0
        for node in nodes:
            for (line, column), _ in operator.mutation_positions(node):
                if _function_of(node) is not None and not _is_annotation(node) and not _is_logging(node):
                    yield Mutant(module, line, column, name, occurrence)
                occurrence += 1


def _caught(node: Any) -> list[tuple[Any, Any]]:
    """What an ``except`` names, each with the node it stands in."""
    if node.type != "except_clause":
        return []
    named = node.children[1]
    listed = named.children[1] if named.type == "atom" else None
    if listed is None:
        return [(node, named)]
    return [(listed, each) for each in listed.children[::2]] if listed.type == "testlist_comp" else [(named, listed)]


def _is_worth_leaving_out(node: Any) -> bool:
    statement = node.children[0]
    if _is_logging(statement):
        return False
    if statement.type in ("atom_expr", "power", "await"):
        return any(getattr(child, "type", "") == "trailer" for child in statement.children)
    if statement.type == "expr_stmt":
        function, target = _function_of(node), statement.children[0]
        return target.type in ("atom_expr", "power") and function != "__init__"
    return statement.type in ("raise_stmt", "del_stmt")


def _function_of(node: Any) -> str | None:
    """The function whose body a node is in; constants and settings outside of functions are not mutated."""
    child, parent = node, node.parent
    while parent is not None:
        if parent.type == "funcdef" and child is parent.children[-1]:
            return str(parent.name.value)
        child, parent = parent, parent.parent
    return None


def _is_annotation(node: Any) -> bool:
    child, parent = node, node.parent
    while parent is not None and parent.type not in ("simple_stmt", "suite"):
        if parent.type == "annassign" and child is parent.children[1]:
            return True
        if parent.type == "tfpdef":
            return True
        child, parent = parent, parent.parent
    return False


def _is_logging(node: Any) -> bool:
    while node is not None and node.type not in ("simple_stmt", "suite", "file_input"):
        if node.get_code(include_prefix=False).removeprefix("await ").startswith(_LOGGING):
            return True
        node = node.parent
    return node is not None and node.get_code(include_prefix=False).startswith(_LOGGING)
