"""Skills as the classes that have them define them, and as their callers see them."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

from dimos_streams.common.invalid import in_a_line, problems_with_values
from dimos_streams.common.schemas.docstrings import described
from dimos_streams.common.schemas.plain import plain_schema
from dimos_streams.errors import SkillArgumentError
from dimos_streams.skill.call import Call
from dimos_streams.skill.declaration import policy_of
from dimos_streams.skill.info import SkillInfo
from dimos_streams.skill.policy import SkillPolicy, SkillTraits

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=True)
"""The rules for a skill's arguments; a default is taken as if it had been given."""


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
        try:
            checked = self.model.model_validate(dict(arguments))
        except ValidationError as error:
            raise SkillArgumentError(skill, problems_with_values(error, "arguments")) from error
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

    def info(self, prefix: str = "") -> SkillInfo:
        """Return the description that callers see; a namespaced module's ``prefix`` comes before name and
        resources."""
        policy, public = self.policy, prefix.replace("/", "_")
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

    Raises ``TypeError`` for a signature that can't be a schema.
    """
    found: dict[str, SkillSpec] = {}
    for base in reversed(owner.__mro__):
        for name in vars(base):
            function = inspect.unwrap(getattr(owner, name)) if callable(getattr(owner, name, None)) else None
            policy = policy_of(function)
            if function is not None and policy is not None:
                found[policy.name or name] = _spec(owner, function, policy)
    for spec in found.values():
        if spec.policy.undo and spec.policy.undo not in found:
            raise TypeError(f"{owner.__name__}.{spec.name}: undo names {spec.policy.undo!r}, which is no skill of it")
    return found


@functools.cache
def _spec(owner: type, function: Callable[..., Any], policy: SkillPolicy) -> SkillSpec:
    where = f"{owner.__name__}.{function.__name__}"
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f"{where}: a skill can't yield: it sends updates by its call, and returns its result")
    hints = typing.get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    text, descriptions = described(inspect.getdoc(function) or "", [parameter.name for parameter in parameters])
    fields: dict[str, Any] = {}
    call_parameter = None
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"{where}: a skill can't have {parameter}")
        hint = hints.get(parameter.name)
        if hint is None:
            raise TypeError(f"{where}: {parameter.name!r} needs a type")
        if hint is Call:
            call_parameter = parameter.name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        field = FieldInfo.from_annotated_attribute(hint, default)
        field.description = field.description or descriptions.get(parameter.name)
        fields[parameter.name] = (hint, field)
    name = policy.name or function.__name__
    model = create_model(name, __config__=_CONFIG, **fields)
    try:
        plain_schema(model)
    except ValueError as error:
        raise TypeError(f"{where}: its schema can't be written out: {error}") from error
    _check_defaults(where, fields)
    return SkillSpec(name, function, policy, ModelParameters(model), text, call_parameter)


def _check_defaults(where: str, fields: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` for a default that the skill would refuse if somebody gave it."""
    optional = {name: field for name, field in fields.items() if not field[1].is_required()}
    try:
        create_model("Defaults", __config__=_CONFIG, **optional)()
    except ValidationError as error:
        wrong = in_a_line(problems_with_values(error, "the defaults"))
        raise TypeError(f"{where} has a default that it would refuse: {wrong}") from error
