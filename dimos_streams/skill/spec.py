"""Skills as the classes that have them define them, and as their callers see them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import CellType, FunctionType
from typing import Any, Protocol

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dimos_streams.common.names import MAX_TOOL_NAME
from dimos_streams.common.schemas.declaration_faults import DeclarationFaults
from dimos_streams.common.schemas.docstrings import described
from dimos_streams.common.schemas.plain import plain_schema
from dimos_streams.errors import suggest
from dimos_streams.skill.argument_model import argument_model, checked_arguments
from dimos_streams.skill.call import Call
from dimos_streams.skill.declaration import policy_of
from dimos_streams.skill.info import SkillInfo
from dimos_streams.skill.names import public_prefix
from dimos_streams.skill.policy import SkillPolicy, SkillTraits
from dimos_streams.skill.result_type import ResultType
from dimos_streams.skill.undo_fit import check_undo

_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_TOOL_NAME}}}")
_NAME_RULE = f"valid: 1 to {MAX_TOOL_NAME} letters of ASCII, digits, _ and -, as models' servers ask for"
_NO_METHODS = (property, staticmethod, classmethod, functools.partialmethod)
"""The types of attributes with a function inside that can't be skills."""
_INNER = ("fget", "__func__", "func")
"""The attributes in which they keep their function."""


class Parameters(Protocol):
    """The arguments that a skill takes."""

    def schema(self) -> dict[str, Any]:
        """Return a JSON Schema of their object, without references. It must not be changed."""

    def validate(self, skill: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the skill's function takes them. Raises ``SkillArgumentError``, which names each
        bad one."""


@dataclass(frozen=True, slots=True)
class ModelParameters:
    """Arguments that a pydantic model describes: those of a method, by its signature."""

    model: type[BaseModel]

    def schema(self) -> dict[str, Any]:
        """See ``Parameters``."""
        return plain_schema(self.model)

    def validate(self, skill: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See ``Parameters``."""
        checked = checked_arguments(self.model, skill, arguments)
        return {name: getattr(checked, name) for name in type(checked).model_fields}


@dataclass(frozen=True, slots=True)
class SkillSpec:
    """A skill as the module that has it defines it: by a method of its class, or while it runs."""

    name: str
    function: Callable[..., Any]
    """The function to be called, with the module and the arguments by their names."""
    policy: SkillPolicy
    parameters: Parameters
    description: str
    call_parameter: str | None
    """The name of the parameter that takes the running ``Call``, or None if it takes none."""
    result_type: ResultType = field(default_factory=ResultType, compare=False)
    stray_descriptions: tuple[str, ...] = ()
    """The names that its docstring describes as parameters and that are none."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the arguments that it takes."""
        return tuple(self.parameters.schema()["properties"])

    def info(self, prefix: str = "") -> SkillInfo:
        """Return the description that callers see; a namespaced module's ``prefix`` comes before name and
        resources."""
        policy, public = self.policy, public_prefix(prefix)
        traits = {name: getattr(policy, name) for name in SkillTraits.model_fields}
        traits["resources"] = tuple(f"{prefix}{resource}" for resource in policy.resources)
        traits["undo"] = f"{public}{policy.undo}" if policy.undo else ""
        return SkillInfo(
            name=f"{public}{self.name}",
            description=self.description,
            parameters=self.parameters.schema(),
            **traits,
        )

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function takes them. Raises ``SkillArgumentError``, which names each bad
        field."""
        return self.parameters.validate(self.name, arguments)

    @property
    def is_async(self) -> bool:
        """True if the function is a coroutine function; others run in a thread."""
        return inspect.iscoroutinefunction(self.function)


def skills_of(owner: type) -> dict[str, SkillSpec]:
    """The skills of a class and its bases, by name, in the order of their definition.

    Raises ``TypeError`` for what can't be a skill as it is declared, and for one that would be lost silently.
    """
    found: dict[str, SkillSpec] = {}
    attributes: dict[str, str] = {}
    unread: set[str] = set()
    faults = DeclarationFaults()
    for base in reversed(owner.__mro__):
        for attribute, stated in vars(base).items():
            if not (policy_of(stated) or isinstance(stated, _NO_METHODS)):  # nearly all that a class has
                if type(stated) is FunctionType and stated.__closure__:  # all else may answer to any name
                    with faults.noting():
                        _check_not_hidden(f"{owner.__name__}.{attribute}", stated.__closure__)
                continue
            with faults.noting():
                function = getattr(owner, attribute, None)
                if not (_is_marked(stated) and callable(function)):  # a subclass may say that it has none
                    continue
                spec = _spec(owner, attribute, function)
                other = attributes.setdefault(spec.name, attribute)
                if other != attribute:
                    raise TypeError(f"{owner.__name__}: {other} and {attribute} are both the skill {spec.name!r}")
                found[spec.name] = spec
                continue
            policy = policy_of(stated)  # of what has a fault
            unread |= {attribute, policy.name if policy else ""}
    with faults.noting():
        check_undos(owner.__name__, found, unread)
    faults.refuse()
    return found


def check_undos(owner: str, skills: Mapping[str, SkillSpec], unread: Collection[str] = ()) -> None:
    """Raise ``TypeError`` for the skills of a module whose calls can't be taken back as they say. ``unread`` are the
    names of others, which have faults of their own."""
    faults = DeclarationFaults()
    for spec in skills.values():
        undo = spec.policy.undo
        if undo and undo not in unread:
            with faults.noting():
                _check_undo(f"{owner}.{spec.name}", spec, undo, skills)
    faults.refuse()


def _check_undo(where: str, spec: SkillSpec, undo: str, skills: Mapping[str, SkillSpec]) -> None:
    if undo not in skills:
        raise TypeError(f"{where}: undo names {undo!r}, which is no skill of it{suggest(undo, skills)}")
    if undo == spec.name:
        raise TypeError(f"{where}: undo names {undo!r}, the skill itself; valid: another skill of it")
    check_undo(where, spec, skills[undo])


def _is_marked(stated: object) -> bool:
    """Return whether what a class has in its body is marked as a skill, whatever it is. Raises ``TypeError`` for
    what is no method."""
    inner = next((getattr(stated, name) for name in _INNER if hasattr(stated, name)), None)
    if isinstance(stated, _NO_METHODS) and (policy_of(stated) or policy_of(inner)):
        name = getattr(inner, "__qualname__", inner)
        raise TypeError(f"{name}: a skill is a method, and no {type(stated).__name__}")
    return policy_of(stated) is not None


def _check_not_hidden(where: str, closure: tuple[CellType, ...]) -> None:
    """Raise ``TypeError`` for a function that a decorator has put around a skill, which has its name, without saying
    so. One that calls a skill of another name is a method like any other."""
    for cell in closure:
        with contextlib.suppress(ValueError):  # an empty cell
            inner = cell.cell_contents
            if type(inner) is FunctionType and where.endswith(f".{inner.__name__}") and policy_of(inner) is not None:
                raise TypeError(f"{where}: the decorator above its @skill hides the skill: it needs functools.wraps")


@functools.cache
def _spec(owner: type, attribute: str, function: Callable[..., Any]) -> SkillSpec:
    where = f"{owner.__name__}.{attribute}"
    policy = policy_of(function)
    if policy is None:
        why = f"it overrides a skill: mark it with @skill, too, or say {attribute} = None if there is to be none"
        raise TypeError(f"{where}: {why}")
    name = policy.name or function.__name__
    if policy.audience == "everyone" and not _NAME.fullmatch(name):
        raise TypeError(f"{where}: {name!r} can't be a skill's name ({_NAME_RULE})")
    _check_kind(where, function)
    hints = _hints(where, function)
    parameters = {one.name: one for one in list(inspect.signature(function).parameters.values())[1:]}
    text, descriptions = described(inspect.getdoc(function) or "", parameters)
    fields, call_parameter = _fields(where, parameters.values(), hints, descriptions)
    return SkillSpec(
        name,
        function,
        policy,
        ModelParameters(argument_model(where, name, fields)),
        text,
        call_parameter,
        ResultType(hints.get("return", Any)),
        tuple(each for each in descriptions if each not in parameters),
    )


def _fields(
    where: str, parameters: Iterable[inspect.Parameter], hints: Mapping[str, Any], descriptions: Mapping[str, str]
) -> tuple[dict[str, Any], str | None]:
    """The fields of a skill's arguments, and the name of the parameter that takes the call. Raises ``TypeError`` for
    parameters that can be none."""
    fields: dict[str, Any] = {}
    call_parameter: str | None = None
    faults = DeclarationFaults()
    for parameter in parameters:
        with faults.noting():
            hint = _hint(where, parameter, hints)
            if hint is Call:
                if call_parameter is not None:
                    why = f"{call_parameter!r} takes the call already, and {parameter.name!r} can't"
                    raise TypeError(f"{where}: {why}")
                call_parameter = parameter.name
                continue
            info = _field_info(where, parameter, hint)
            info.description = info.description or descriptions.get(parameter.name)
            fields[parameter.name] = (hint, info)
    faults.refuse()
    return fields, call_parameter


def _field_info(where: str, parameter: inspect.Parameter, hint: Any) -> FieldInfo:
    if parameter.name.startswith("_"):
        raise TypeError(f"{where}: {parameter.name!r} begins with an underscore, which no argument of a skill may")
    try:
        return FieldInfo.from_annotated_attribute(
            hint, ... if parameter.default is parameter.empty else parameter.default
        )
    except TypeError as error:  # of two defaults, for instance
        raise TypeError(f"{where}: {parameter.name!r}: {error}") from error


def _hint(where: str, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
    """The type of a skill's parameter. Raises ``TypeError`` for one that has none, or that can't be given by name."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise TypeError(f"{where}: a skill can't have {parameter}; a decorator needs functools.wraps")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise TypeError(f"{where}: {parameter.name!r} stands before a `/`, and a skill's arguments are given by name")
    hint = hints.get(parameter.name)
    if Call in typing.get_args(hint):
        raise TypeError(f"{where}: {parameter.name!r} always gets the running call: `{parameter.name}: Call`")
    if hint is None:
        remedy = ": `call: Call`, where it is to take the running call" if parameter.name == "call" else ""
        raise TypeError(f"{where}: {parameter.name!r} needs a type{remedy}")
    return hint


def _hints(where: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:  # an annotation may be any expression
        raise TypeError(f"{where}: an annotation can't be resolved: {error}") from error


def _check_kind(where: str, function: Callable[..., Any]) -> None:
    """Raise ``TypeError`` for a function that could not be run as a skill, whatever its parameters are."""
    inner = inspect.unwrap(function)
    if inspect.isasyncgenfunction(inner) or inspect.isgeneratorfunction(inner):
        raise TypeError(f"{where}: a skill can't yield: it sends updates by its call, and returns its result")
    if inspect.iscoroutinefunction(inner) and not inspect.iscoroutinefunction(function):
        raise TypeError(f"{where}: its decorator makes a plain function of it, which would run in a thread")
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None or (first.name != "self" and first.annotation is not first.empty):
        raise TypeError(f"{where}: a skill is a method, and this takes no self")
