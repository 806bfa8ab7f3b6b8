"""The class, the config and an instance of a module, made from its description in a blueprint."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import PydanticUserError, ValidationError
from pydantic_core import ErrorDetails

from dimos_streams.blueprint.model import ModuleSpec
from dimos_streams.common.importing import how_to_get, import_attribute, kind_of
from dimos_streams.common.invalid import what_is_wrong
from dimos_streams.common.process.own_code import raised_at, show_if_debugging
from dimos_streams.common.secrets import know_settings
from dimos_streams.documents.fields import fields_at, paths_called, takes_null
from dimos_streams.documents.problem import BlueprintError, Problem, either, fault, placed
from dimos_streams.errors import UserError, did_you_mean, suggest
from dimos_streams.module import ConfigFault, Module, ModuleConfig, RunContext
from dimos_streams.skill import SkillSpec, skills_of


def instantiate(spec: ModuleSpec, context: RunContext) -> Module:
    """The module that a spec describes, not started yet; its context gets the spec's namespace.

    Raises ``BlueprintError`` if the class can't be imported, its config is not valid, or its constructor leaves out
    Module's.
    """
    cls = module_class(spec)
    config = module_config(spec, cls)
    module = cls(config, name=spec.name, context=dataclasses.replace(context, namespace=spec.prefix))
    if not hasattr(module, "name"):
        valid = "super().__init__(config, name=name, context=context)"
        text = f"module {spec.name!r}: the constructor of {spec.type!r} doesn't call Module's; valid: {valid}"
        raise BlueprintError([Problem(text, spec.where("type"))])
    return module


def module_class(spec: ModuleSpec) -> type[Module]:
    """The class of a module. Raises ``BlueprintError`` that says what is missing and how to get it."""
    try:
        return import_module_class(spec.type, spec.folder)
    except UserError as error:
        raise BlueprintError([Problem(f"module {spec.name!r}: {error}", spec.where("type"))]) from error


def module_config(spec: ModuleSpec, cls: type[Module]) -> ModuleConfig:
    """The config of a module, validated. Raises ``BlueprintError`` that names each bad setting and its place."""
    know_settings(spec.config)  # before something is said of them
    expected = cls.config_type()
    try:
        return expected.model_validate(dict(spec.config))
    except ValidationError as error:
        raise BlueprintError(_unfit_values(spec, expected, error)) from error
    except Exception as error:  # of an author's own check of a value
        show_if_debugging(error)
        fails = f"a check of its settings fails ({type(error).__name__}: {error}){raised_at(error)}"
        text = f"module {spec.name!r}: {spec.type}: {fails}; one that refuses a value raises ValueError"
        raise BlueprintError([Problem(text, spec.where("config"))]) from error


def config_problems(
    spec: ModuleSpec, cls: type[Module], config: ModuleConfig, *, names_paths: bool = False
) -> list[Problem]:
    """Return what a module itself finds wrong with its config. Where its own code fails at that, this is a problem,
    too.

    ``names_paths`` is for who sees no lines of files beside the texts.
    """
    faults = reported_faults(spec, cls, "problems", config)
    if isinstance(faults, Problem):
        return [faults]
    problems = [
        Problem(
            f"module {spec.name!r}: {'.'.join(path) + ': ' if names_paths else ''}{text}",
            _judged_at(spec, *path),
        )
        for path, text in faults
    ]
    return [*problems, *_hook_problems(spec, cls, config, unfit=bool(faults))]


def config_warnings(spec: ModuleSpec, cls: type[Module], config: ModuleConfig) -> Iterator[Problem]:
    """Yield a warning for each thing that a module says may be wrong with its config."""
    faults = reported_faults(spec, cls, "possible_faults", config)
    if isinstance(faults, Problem):
        yield faults
        return
    for path, text in faults:
        yield Problem(f"module {spec.name!r}: {text}", _judged_at(spec, *path), "warning")


def reported_faults(spec: ModuleSpec, cls: type[Module], hook: str, *given: Any) -> list[ConfigFault] | Problem:
    """Return the faults that a class tells of a config; the problem of its own code where that fails."""
    try:
        return [ConfigFault(tuple(map(str, path)), str(text)) for path, text in getattr(cls, hook)(*given)]
    except Exception as error:
        return _failing_hook(spec, hook, error, "pairs of a path and a text")


def _hook_problems(spec: ModuleSpec, cls: type[Module], config: ModuleConfig, *, unfit: bool) -> Iterator[Problem]:
    """Yield a problem for each of a class's other answers to a config that fails. That of one that is ``unfit`` may
    refuse it with a ``UserError``."""
    answers: list[tuple[str, Callable[[], object], str]] = [
        ("needed_inputs", lambda: frozenset(map(str, cls.needed_inputs(config))), "names of inputs"),
        ("longest_gaps", lambda: dict(cls.longest_gaps(config)), "seconds by input"),
        ("listens_at", lambda: served_address(cls, config), "a host and a port, or None"),
    ]
    for hook, answer, gives in answers:
        try:
            answer()
        except Exception as error:
            if not (unfit and isinstance(error, UserError)):
                yield _failing_hook(spec, hook, error, gives)


def _judged_at(spec: ModuleSpec, *path: str) -> str:
    """The places of a part of the config that is judged with all that is inside of it: what was set there on top of
    its file, by a command line for instance, and the line of the part."""
    base, inside = spec.where("config", *path), list[str]()
    for length in range(len(path), -1, -1):
        key = ".".join(("config", *path[:length]))
        inside = [source for at, source in spec.sources.items() if at.startswith(f"{key}.")]
        if inside or key in spec.sources:
            break
    on_top = " and ".join(dict.fromkeys(source for source in inside if _file(source) != _file(base)))
    return f"{on_top} (on top of {base})" if on_top and base else on_top or base


def _file(source: str) -> str:
    """The file of a source such as ``"file:line"``; any other source, such as the command line, as it is."""
    return source.rpartition(":")[0] or source


def served_address(cls: type[Module], config: ModuleConfig) -> tuple[str, int] | None:
    """The host and the port at which a module of this config serves, if it says so."""
    address = cls.listens_at(config)
    return None if address is None else (str(address[0]), int(address[1]))


def _failing_hook(spec: ModuleSpec, hook: str, error: Exception, gives: str) -> Problem:
    """The problem of an author's answer that fails, with what it must give."""
    show_if_debugging(error)
    fails = f"its {hook}(config) fails ({type(error).__name__}: {error}){raised_at(error)}"
    text = f"{fails}; it must be a classmethod that returns {gives}"
    return Problem(f"module {spec.name!r}: {spec.type}: {text}", spec.where("type"))


def required_inputs(spec: ModuleSpec, cls: type[Module]) -> frozenset[str]:
    """The inputs that a module can't do without: those that are declared so, and those that its config makes it need
    where neither that config nor what says so is a problem of its own."""
    inputs = (stream for stream in cls.streams().values() if stream.direction == "in")
    declared = frozenset(stream.name for stream in inputs if stream.required)
    try:
        return declared.union(cls.needed_inputs(module_config(spec, cls)))
    except Exception:  # ``config_problems`` names it
        return declared


def longest_gaps(spec: ModuleSpec, cls: type[Module]) -> Mapping[str, float]:
    """The seconds for which a module's inputs may bring nothing, by input, as far as the module says. Raises
    ``UserError`` for a config that is not valid."""
    return cls.longest_gaps(module_config(spec, cls))


def module_skills(spec: ModuleSpec, cls: type[Module]) -> Mapping[str, SkillSpec]:
    """The skills of a module as its blueprint configures it, by name; those of its class alone where the config is a
    problem of its own. Raises ``TypeError`` for a skill without a schema, and ``BlueprintError`` where the class's
    answer fails in another way."""
    try:
        config = module_config(spec, cls)
    except (UserError, TypeError):  # its value, or its class
        return skills_of(cls)
    try:
        return dict(cls.configured_skills(config))
    except UserError:
        return skills_of(cls)
    except (TypeError, NameError, PydanticUserError):
        raise
    except Exception as error:
        raise BlueprintError([_failing_hook(spec, "configured_skills", error, "skills by name")]) from error


def missing_packages(cls: type[Module]) -> list[str]:
    """Return how to get the ``packages`` that a module's class declares and that are not installed."""
    packages: Iterable[str] = getattr(cls, "packages", ())
    return [how_to_get(package) for package in packages if importlib.util.find_spec(package) is None]


def import_module_class(reference: str, beside: str = "") -> type[Module]:
    """The class that ``"package.module:Class"`` names. Raises ``UserError``; see ``import_attribute``."""
    found = import_attribute(reference, beside)
    if not (isinstance(found, type) and issubclass(found, Module)):
        raise UserError(f"{reference!r} is not a Module class but {kind_of(found)}")
    try:
        inspect.signature(found).bind({}, name="", context=None)
    except TypeError as error:
        text = f"its constructor can't be called as Module's, with (config, *, name, context): {error}"
        raise UserError(f"{reference!r}: {text}; prepare in start() what needs no such arguments") from error
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise UserError(f"{reference!r} is abstract: it lacks {', '.join(missing)}")
    return found


def _unfit_values(spec: ModuleSpec, expected: type[ModuleConfig], error: ValidationError) -> Iterator[Problem]:
    """Yield a problem for each thing that is wrong; what a value might be instead is one, not one for each kind."""
    values: dict[tuple[int | str, ...], list[ErrorDetails]] = {}
    for detail in error.errors():
        values.setdefault(placed(detail, spec.config)["loc"], []).append(detail)
    for number, (loc, details) in enumerate(values.items()):
        if number == _MOST_WRONG:
            text = f"module {spec.name!r}: {len(values) - number} more of its settings can't be used"
            yield Problem(text, spec.where("config"))
            return
        path = [str(part) for part in loc]
        wanted = [what_is_wrong(detail) for detail in details]
        text = either([*wanted, *["it must be null"] * (len(wanted) > 1 and takes_null(expected, path))])
        if not text or not loc or any(detail["type"] in _NO_LIST for detail in details):
            yield from (_config_problem(spec, expected, detail) for detail in details)
            continue
        yield Problem(f"module {spec.name!r}: {fault({**details[0], 'loc': loc}, text)}", spec.where("config", *path))


def _config_problem(spec: ModuleSpec, expected: type[ModuleConfig], detail: ErrorDetails) -> Problem:
    stated = ".".join(map(str, detail["loc"]))
    detail = placed(detail, spec.config)
    if stated and not detail["loc"]:
        return Problem(f"module {spec.name!r}: the default of {stated}: {fault(detail)}", spec.where("type"))
    path = [str(part) for part in detail["loc"]]
    if detail["type"] in ("missing", "missing_argument"):
        return _lack(spec, *path)
    where = _judged_at(spec, *path)
    if detail["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return Problem(f"module {spec.name!r} has no setting {'.'.join(path)!r}{_meant(spec, expected, path)}", where)
    given = detail["input"]
    if detail["type"] in _NO_LIST and isinstance(given, Mapping) and given and all(map(str.isdecimal, given)):
        items = list(given)
        text = f"{'.'.join(path)} has no item {', '.join(items)} in the blueprint that could be set: set it whole"
        return Problem(f"module {spec.name!r}: {text}", spec.where("config", *path, items[0]))
    return Problem(f"module {spec.name!r}: {fault(detail)}", where)


def _meant(spec: ModuleSpec, expected: type[ModuleConfig], path: Sequence[str]) -> str:
    """The settings that may be meant by an unknown one: those of its name elsewhere in the config, or else those
    beside it with a similar name."""
    if elsewhere := [f"{spec.name}.{place}" for place in paths_called(expected, path[-1])]:
        return did_you_mean(elsewhere)
    names = fields_at(expected, path[:-1])
    return suggest(path[-1], names) or f" (valid: {', '.join(names) or 'none: it has no settings'})"


def _lack(spec: ModuleSpec, *path: str) -> Problem:
    """The problem of a setting that is needed. What was set beside it is not why, unless nothing else made the part
    that needs it, such as a row of a table: the row's name may be another's, misspelt."""
    text = f"module {spec.name!r} needs the setting {'.'.join(path)!r}"
    part = ".".join(("config", *path[:-1]))
    if len(path) == 1 or part in spec.sources or not any(at.startswith(f"{part}.") for at in spec.sources):
        return Problem(text, spec.where("config", *path))
    table, _, row = part.rpartition(".")
    rows = (at.removeprefix(f"{table}.").partition(".")[0] for at in spec.sources if at.startswith(f"{table}."))
    near = suggest(row, (name for name in rows if name != row))
    return Problem(text + near, _judged_at(spec, *path[:-1]))


_NO_LIST = ("list_type", "tuple_type")
_MOST_WRONG = 100
"""Maximum number of a module's settings of which each is said to be wrong: for each all others are looked through."""
