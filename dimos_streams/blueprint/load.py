"""Blueprints from YAML files, stock names and Python attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dimos_streams.blueprint.files.draft import Draft
from dimos_streams.blueprint.files.python_code import references_in
from dimos_streams.blueprint.files.reading import draft_of
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.robots import robots_of
from dimos_streams.blueprint.stock import StockBlueprint, find_stock, stock_blueprints
from dimos_streams.common.importing import import_attribute, kind_of
from dimos_streams.common.process.disk import at_home, real_path
from dimos_streams.documents.document import display_path, read_document, refuse_broken_link
from dimos_streams.errors import UserError
from dimos_streams.module import Module


def resolve(reference: str) -> Blueprint:
    """The blueprint of a stock name, a YAML file's path, or ``"package.module:attribute"``.

    Raises ``UserError``; with a place for each problem (``BlueprintError``) if there is such a blueprint but its form
    is wrong. Classes are not imported: see ``check``.
    """
    return drafted(reference).sound()


def drafted(reference: str) -> Draft:
    """Return what can be read of the blueprint that ``resolve`` finds. Raises ``UserError`` if nothing can."""
    return _Loader().draft(reference, Path())


def is_path(reference: str) -> bool:
    """Return whether a reference means a YAML file, and neither a name nor Python's attribute."""
    return reference.endswith((".yaml", ".yml")) or "/" in reference


def load(path: Path) -> Blueprint:
    """The blueprint of a YAML file. Raises ``UserError`` as ``resolve`` does."""
    return _Loader().load(path).sound()


@dataclass(frozen=True, slots=True)
class StockSummary:
    """A stock blueprint as ``list`` shows it."""

    name: str
    robots: Mapping[str, int]
    """See ``robots_of``."""
    description: str
    """The first line of its description, or, if it can't be loaded, the reason."""
    package: str
    """The installed package that registers it; empty for one of this package's own."""


def stock_summaries() -> list[StockSummary]:
    """Return the summaries of all stock blueprints, by name."""
    return [_summary(found) for found in stock_blueprints().values()]


def _summary(stock: StockBlueprint) -> StockSummary:
    name, package = stock.name, stock.package
    try:
        found = resolve(name)
    except UserError as error:
        return StockSummary(name, {}, f"cannot be loaded: {error}".partition("\n")[0], package)
    return StockSummary(name, robots_of(found), found.description.partition("\n")[0], package)


class _Loader:
    """Follows references to files and Python. Each file is read once, however often it is included."""

    def __init__(self) -> None:
        self._reading: list[Path] = []
        self._found: dict[Path, Draft | UserError] = {}

    def draft(self, reference: str, folder: Path) -> Draft:
        """The draft of the blueprint that a reference in a file of ``folder`` means. Raises ``UserError``."""
        if reference.endswith(".py"):
            raise UserError(
                f"{reference!r} is Python code, whose blueprints are given as {references_in(Path(reference))}"
            )
        if is_path(reference):
            return self.load(folder / at_home(reference))
        target = reference if ":" in reference else find_stock(reference, folder).target
        found = target if isinstance(target, Path) else import_attribute(target, str(folder))
        if isinstance(found, Path):
            return self.load(found)
        if isinstance(found, type) and issubclass(found, Module):
            holds = f"modules: {{{found.__name__.lower()}: {{type: {target!r}}}}}"
            raise UserError(f"{target!r} is a Module class and no blueprint, which would hold it: `{holds}`")
        if isinstance(found, ModuleSpec):
            raise UserError(f'{target!r} is one module and no blueprint, which would hold it: blueprint("NAME", …)')
        if not isinstance(found, Blueprint):
            raise UserError(f"{target!r} is neither a Blueprint nor the Path of a file but {kind_of(found)}")
        return Draft(found)

    def load(self, path: Path) -> Draft:
        """The draft of a file. Raises ``UserError``."""
        refuse_broken_link(path)
        path = real_path(path)
        if path in self._reading:
            circle = (*self._reading[self._reading.index(path) :], path)
            way = " -> ".join(map(display_path, circle))
            raise UserError(f"blueprints include each other in a circle: {way}")
        if path not in self._found:
            self._reading.append(path)
            try:
                self._found[path] = draft_of(read_document(path), path, self.draft)
            except UserError as error:
                self._found[path] = error
            finally:
                self._reading.pop()
        found = self._found[path]
        if isinstance(found, UserError):
            raise found
        return found
