"""The page about the architecture says truly where things are, and its picture who imports whom."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dimos_streams"
TEXT = (ROOT / "docs" / "architecture.md").read_text()
PICTURE = TEXT.partition("flowchart")[2].partition("```")[0]
PAGES = sorted(path.relative_to(ROOT) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))
_ARROW = re.compile(r'^    (\w+)(?:\["(.+)"\])? --> (\w+)$', re.MULTILINE)
_NODE = re.compile(r'^    (\w+)\["(.+)"\]', re.MULTILINE)
_PATH = re.compile(r"`((?:dimos_streams|lcm_types|skills|blueprints|benchmarks|tests|examples|docs)/[\w./-]*)`")
_AT_THE_BOTTOM = "base"


@dataclass
class _Source:
    """The parts of a module's source that the tests look at."""

    imported: list[str] = field(default_factory=list)
    """The modules from which it imports something."""
    classes: list[tuple[str, int]] = field(default_factory=list)
    """Names and lines."""
    docstrings: list[str] = field(default_factory=list)
    """Those of itself, its classes and its functions."""
    texts: list[tuple[int, bool]] = field(default_factory=list)
    """The lines of texts between statements, and whether an assignment is before each."""


@functools.cache
def _source(path: Path) -> _Source:
    source = _Source()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            source.imported.append(node.module or "")
        if isinstance(node, ast.ClassDef):
            source.classes.append((node.name, node.lineno))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            source.docstrings.append(ast.get_docstring(node) or "")
        body = getattr(node, "body", [])
        for before, at in itertools.pairwise(body if isinstance(body, list) else []):
            if isinstance(at, ast.Expr) and isinstance(at.value, ast.Constant) and at.value.value != ...:
                source.texts.append((at.lineno, isinstance(before, ast.Assign | ast.AnnAssign)))
    return source


def _drawn() -> dict[str, str]:
    """The node of the picture that stands for each package or module."""
    named = {node: text.split(", ") for node, text in _NODE.findall(PICTURE)}
    nodes = {node for arrow in _ARROW.findall(PICTURE) for node in (arrow[0], arrow[2])}
    return {name: node for node in nodes for name in named.get(node, [node])}


def _imports() -> set[tuple[str, str]]:
    """The pairs of nodes of which one imports the other."""
    node_of, found = _drawn(), set()
    for path in (*PACKAGE.rglob("*.py"), *ROOT.glob("skills/*.py")):
        at = path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT)
        importer = at.parts[0].removesuffix(".py")
        for module in _source(path).imported:
            if module.startswith("dimos_streams."):
                imported = module.split(".")[1]
                found.add((node_of.get(importer, _AT_THE_BOTTOM), node_of.get(imported, _AT_THE_BOTTOM)))
    return {(importer, imported) for importer, imported in found if importer != imported}


def _below(node: str, arrows: set[tuple[str, str]]) -> set[str]:
    direct = {imported for importer, imported in arrows if importer == node}
    return direct.union(*(_below(imported, arrows) for imported in direct))


def test_each_package_and_room_is_named() -> None:
    folders = [path.parent for path in (*PACKAGE.glob("*/__init__.py"), *PACKAGE.glob("[!lm]*/*/__init__.py"))]
    for folder in folders:
        at = folder.relative_to(PACKAGE)
        if at.parts[0] in ("lcm_types", "blueprints", "skills"):
            continue
        assert f"`{at.name}/`" in TEXT or f"`dimos_streams/{at}/`" in TEXT, at


def test_each_room_of_the_page_is_in_its_table() -> None:
    table = TEXT.partition("| `dimos_streams/dashboard/page/` | |\n")[2].partition("\n\n")[0]
    page = PACKAGE / "dashboard" / "page"
    assert set(re.findall(r"`(\w+)/`", table)) == {path.name for path in page.iterdir() if path.is_dir()}
    row_of = {name: row for row, line in enumerate(table.splitlines()) for name in re.findall(r"`([\w.]+)/?`", line)}
    assert [name for name in row_of if not (page / name).exists()] == []
    imports = [
        (path.relative_to(page).parts[0], (path.parent / at).resolve().relative_to(page.resolve()).parts[0])
        for path in page.rglob("*.js")
        for at in re.findall(r'^import .* from "(\.[^"]+)"', path.read_text(), re.MULTILINE)
    ]
    assert imports
    upwards = [(by, at) for by, at in imports if row_of.get(at, len(row_of)) < row_of.get(by, 0)]
    assert upwards == [], "what stands lower imports nothing that stands above"


def test_no_folder_has_more_modules_than_one_sees_at_a_glance() -> None:
    generated = {path.name for path in (ROOT / "lcm_types").iterdir()}
    folders = {path.parent for root in (PACKAGE, ROOT / "skills") for path in root.rglob("*.py")}
    modules = {
        folder.relative_to(ROOT): sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        for folder in folders
        if not (folder.parent.name == "messages" and folder.name in generated)
    }
    full = {str(folder): count for folder, count in modules.items() if count > 15}
    assert full == {}, "make a room below it for modules that belong together (Rooms in docs/architecture.md)"


def test_a_name_finds_one_class() -> None:
    generated = {path.name for path in (ROOT / "lcm_types").iterdir()}
    classes: dict[str, list[str]] = {}
    for path in (*PACKAGE.rglob("*.py"), *ROOT.glob("skills/**/*.py")):
        if path.parent.name not in generated or path.parent.parent.name != "messages":
            for name, line in _source(path).classes:
                classes.setdefault(name, []).append(f"{path.relative_to(ROOT)}:{line}")
    assert {name: places for name, places in classes.items() if len(places) > 1} == {}


def test_no_docstring_begins_as_a_fragment() -> None:
    paths = [*PACKAGE.rglob("*.py"), *ROOT.glob("skills/**/*.py")]
    begins = re.compile(r'^ *"""(?:For|Of|By) .*', re.MULTILINE)
    found = {str(path.relative_to(ROOT)): begins.findall(path.read_text()) for path in paths}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_no_docstring_says_what_it_describes_only_by_the_one_before_it() -> None:
    paths = [*PACKAGE.rglob("*.py"), *ROOT.glob("skills/**/*.py")]
    by_another = re.compile(r"(?:\w+ )?[Tt]he same(?:,| (?:of|for|as|by|on|in|with|without)\b)")
    found = [
        f"{path.relative_to(ROOT)}: {text[:40]}"
        for path in paths
        for text in _source(path).docstrings
        if by_another.match(text)
    ]
    assert found == [], "who reads one in an editor or in the reference does not see the one before it"


def test_no_module_class_or_function_is_described_by_a_subordinate_clause() -> None:
    generated = {path.name for path in (ROOT / "lcm_types").iterdir()}
    paths = [*PACKAGE.rglob("*.py"), *ROOT.glob("skills/**/*.py")]
    found = []
    for path in (path for path in paths if path.parent.name not in generated):
        for text in _source(path).docstrings:
            if text.startswith(("What ", "Whether ", "Where ", "When ", "Which ", "Whose ", "How ")):
                found.append(f"{path.relative_to(ROOT)}: {text[:40]}")
    assert found == []


def test_each_text_between_statements_describes_the_assignment_before_it() -> None:
    generated = {path.name for path in (ROOT / "lcm_types").iterdir()}
    paths = [*PACKAGE.rglob("*.py"), *ROOT.glob("skills/**/*.py")]
    found = []
    for path in (path for path in paths if path.parent.name not in generated):
        for line, is_of_assignment in _source(path).texts:
            if not is_of_assignment:
                found.append(f"{path.relative_to(ROOT)}:{line}")
    assert found == []


@pytest.mark.slow
def test_each_arrow_of_the_picture_is_an_import_and_each_import_follows_the_arrows() -> None:
    arrows = {(importer, imported) for importer, _, imported in _ARROW.findall(PICTURE)}
    imports = _imports()
    assert arrows - imports == set(), "arrows that are no imports"
    against = {pair for pair in imports if _AT_THE_BOTTOM not in pair and pair[1] not in _below(pair[0], arrows)}
    assert against == set(), "imports that the picture does not show"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    missing = [
        name
        for name in _PATH.findall((ROOT / page).read_text())
        if "PACKAGE" not in name and not (ROOT / name).exists()
    ]
    assert missing == []
