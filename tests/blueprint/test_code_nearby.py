"""Code that lies in a folder nearby, where Python does not look for it: errors name it, and the command for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest

from dimos_streams.blueprint.load import resolve
from dimos_streams.errors import UserError
from tests.blueprint.checked import check_reference, found_in
from tests.blueprint.conftest import Write

FINDS = "`PYTHONPATH={} dimos-streams …` finds it"
CAMERA = "from tests.blueprint.toy_modules import Camera\n"
IMPORTING = "import {stem}_parts\nfrom dimos_streams.blueprint import blueprint\nB = blueprint('b')\n"


@pytest.fixture(autouse=True)
def names_of_its_own(write: Write, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The working directory is looked in, as by the command, and no test sees what another one has imported."""
    monkeypatch.syspath_prepend(".")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]


def refusal(reference: str) -> str:
    with pytest.raises(UserError) as error:
        resolve(reference)
    return str(error.value)


def test_a_module_in_a_folder_of_the_working_directory(write: Write) -> None:
    write("inner dir/nearby_a.py", "")
    write(".hidden/nearby_b.py", "")
    found = FINDS.format("'inner dir'")
    assert refusal("nearby_a:B") == f"there is no Python module 'nearby_a'; inner dir/nearby_a.py is there: {found}"
    assert refusal("nearby_b:B").endswith("'nearby_b' in the working directory, on PYTHONPATH, or installed")


def test_a_path_that_is_set_is_kept(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("inner/nearby_c.py", "")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert "`PYTHONPATH=inner:$PYTHONPATH dimos-streams …`" in refusal("nearby_c:B")


def test_a_package_whose_project_has_its_name(write: Write) -> None:
    """As `new package` makes it, when its folder is not the working directory yet."""
    write("nearby_d/nearby_d/__init__.py", "")
    write("nearby_d/nearby_d/robots.py", "")
    finds = FINDS.format("nearby_d")
    assert refusal("nearby_d:B") == f"'nearby_d' has no 'B'; nearby_d/nearby_d/__init__.py is there: {finds}"
    assert refusal("nearby_d.robots:B").endswith(f"; nearby_d/nearby_d/robots.py is there: {finds}")


def test_a_package_is_found_in_the_folder_above_its_checkout(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `pip install --editable` has it found: behind the path, on which the checkout is a mere folder."""
    code = write(
        "nearby_p/nearby_p/__init__.py", "from dimos_streams.blueprint import blueprint\nB = blueprint('b')\n"
    )

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
            return spec_from_file_location(name, code) if name == "nearby_p" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert resolve("nearby_p:B").name == "b"


def test_a_module_that_another_one_imports(write: Write) -> None:
    write("inner/nearby_e.py", IMPORTING.format(stem="nearby_e"))
    write("inner/nearby_e_parts.py", "")
    said = refusal("inner.nearby_e:B")
    assert "there is no Python module 'nearby_e_parts'; inner/nearby_e_parts.py is there: " in said
    assert "pip install" not in said


@pytest.mark.parametrize(
    ("file", "kind", "root"),
    [("nearby_f.py", "nearby_f", "../else"), ("robots/nearby_g/__init__.py", "robots.nearby_g", "../else")],
)
def test_a_class_beside_its_blueprint_or_around_it(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, kind: str, root: str
) -> None:
    write(f"else/{file}", CAMERA)
    write(f"else/{Path(file).parent}/x.yaml", f"modules:\n  a: {{type: '{kind}:Camera'}}\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    blueprint = f"../else/{Path(file).parent}/x.yaml"
    _, (problem, *_) = check_reference(blueprint)
    assert problem.text.endswith(f"; ../else/{file} is there: {FINDS.format(root)}")
    monkeypatch.syspath_prepend(root)
    assert check_reference(blueprint)[1] == []


def test_what_can_be_imported_is_looked_for_nowhere_else(write: Write) -> None:
    write("nearby_h.py", "")
    write("inner/nearby_h.py", "B = 1\n")
    (line,) = found_in(write, "modules:\n  a: {type: 'nearby_h:B'}\n")
    assert line.endswith("'nearby_h' has no 'B'")


def test_a_name_whose_package_or_file_lies_in_a_folder(write: Write) -> None:
    write("inner/flat.yaml", "name: flat\n")
    assert refusal("flat").startswith("no blueprint is called 'flat'; did you mean 'inner/flat.yaml'? (stock: ")
    write("nearby_i/pyproject.toml", '[project.entry-points."dimos_streams.blueprints"]\nflat = "flat:B"\n')
    assert refusal("flat").startswith(
        "no blueprint is called 'flat': the package of nearby_i/pyproject.toml registers it, and is not installed"
        " here: `pip install --editable nearby_i` (stock: "
    )


def test_a_link_that_leads_to_itself_hides_no_folder(write: Write) -> None:
    write("inner/nearby_l.py", "")
    Path("loop").symlink_to("loop")
    assert "inner/nearby_l.py is there" in refusal("nearby_l:B")


def test_a_file_beside_a_blueprint_is_named_as_it_would_include_it(write: Write) -> None:
    write("parts/beside.yaml", "name: beside")
    assert "did you mean 'beside.yaml'?" in refusal(str(write("parts/whole.yaml", "include: [beside]")))


CODE = """\
import dimos_streams.blueprint as bp
from dimos_streams.blueprint import Blueprint, blueprint, include, module

one: Blueprint = blueprint("one")
part = module("a:B")
two, three = bp.include(one), None
four = bp.include("follow-person")
"""


def test_a_file_of_python_code_is_named_with_its_blueprints(write: Write) -> None:
    write("nearby_m.py", CODE)
    assert refusal("nearby_m").startswith(
        "no blueprint is called 'nearby_m'; did you mean 'nearby_m:one' or 'nearby_m:four'? (stock: "
    )
    given = "is Python code, whose blueprints are given as 'nearby_m:one' or 'nearby_m:four'"
    assert refusal("nearby_m.py") == f"'nearby_m.py' {given}"


@pytest.mark.parametrize("code", ["", "def x(:", "\0", "b = make()\n"])
def test_a_file_of_python_code_without_a_plain_blueprint_is_named_too(write: Write, code: str) -> None:
    write("nearby_n.py", code)
    assert refusal("nearby_n").startswith("no blueprint is called 'nearby_n'; did you mean 'nearby_n:ATTRIBUTE'? (st")


def test_a_blueprints_file_comes_before_python_code(write: Write) -> None:
    write("nearby_o.py", CODE)
    write("inner/nearby_o.yaml", "name: flat\n")
    assert "'nearby_o'; did you mean 'inner/nearby_o.yaml'? (stock: " in refusal("nearby_o")
