"""docs/blueprints.md and docs/http.md have every key, option and route, and README leads to what people look for."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from dimos_streams.blueprint import stock
from dimos_streams.blueprint.files import forms
from dimos_streams.bridge.http.call_routes import CallBody
from dimos_streams.messages import image, registry
from dimos_streams.streams import In, Out

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "blueprints.md").read_text()
HTTP = (ROOT / "docs" / "http.md").read_text()
_SAID: dict[str, tuple[Any, ...]] = {
    "nothing": ([], {}, ""),
    "none": ("", None),
    "needed": (None,),
    "the file's": ("",),
    "one of its own": (None,),
}
"""How the page says what a key is without a value."""


def table(page: str, heading: str) -> dict[str, str]:
    """The first two columns of the first table below a heading, or below the start of a line."""
    below = page.partition(f"\n{heading}")[2]
    rows = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert rows is not None, heading
    cells = [line.split(" | ") for line in rows[0].splitlines()[2:]]
    return {row[0].strip("| `"): row[1].strip("` ") for row in cells}


@pytest.mark.feature("K3")
@pytest.mark.parametrize(
    ("heading", "form"),
    [
        ("### Keys of a file", forms.FileForm),
        ("### Keys of a module", forms.ModuleForm),
        ("### Keys of an include", forms.IncludeForm),
    ],
)
def test_every_key_of_a_blueprint_is_there_with_its_default(heading: str, form: type[BaseModel]) -> None:
    said = table(PAGE, heading)
    assert set(said) == set(form.model_fields)
    for name, field in form.model_fields.items():
        default = field.get_default(call_default_factory=True, validated_data={})
        if field.is_required():
            assert said[name] == "needed", name
        elif said[name] in _SAID:
            assert default in _SAID[said[name]], name
        else:
            assert said[name] == default, name


def test_a_replacement_has_the_keys_of_a_module_but_for_its_namespace() -> None:
    assert set(forms.ModuleForm.model_fields) - set(forms.ReplacementForm.model_fields) == {"namespace"}


def test_every_option_of_an_input_is_there_with_its_default() -> None:
    options = inspect.signature(In).parameters
    assert table(PAGE, "`In[T]` and `Out[T]` are annotations") == {
        name: repr(option.default) for name, option in options.items()
    }


def test_methods_of_streams_are_written_as_calls_and_properties_as_bare_names() -> None:
    of_an_input = " ".join(
        re.findall(r"^\| (`.+?) \|", PAGE.partition("| of an `In` | |\n")[2].partition("\n\n")[0], re.M)
    )
    of_an_output = re.search(r"^An `Out` has .*$", PAGE, re.MULTILINE)
    assert of_an_output is not None
    said = [(In, of_an_input), (Out, of_an_output[0])]
    named = [(stream, *name) for stream, text in said for name in re.findall(r"`(?:await )?(\w+)(\(.*?\))?`", text)]
    of_streams = [(stream, name, call) for stream, name, call in named if hasattr(stream, name)]
    assert {"latest", "age", "wired", "publish", "wanted"} <= {name for _, name, _ in of_streams}
    wrong = [
        f"{stream.__name__}.{name}{call}"
        for stream, name, call in of_streams
        if isinstance(inspect.getattr_static(stream, name), property) == bool(call)
    ]
    assert wrong == []


def test_the_groups_of_entry_points_and_the_encodings_are_there() -> None:
    groups = set(re.findall(r'^\[project\.entry-points\."(.+)"\]$', PAGE, re.MULTILINE))
    assert groups == {stock.GROUP, registry.GROUP}
    encodings = PAGE.partition("**Encodings**")[2].partition("\n\n")[0]
    assert set(image._PIXELS) <= set(re.findall(r"`(\w+)`", encodings))


def test_every_route_is_there() -> None:
    declared = {
        f"{method.upper()} {path}"
        for source in (ROOT / "dimos_streams" / "bridge").rglob("*.py")
        for method, path in re.findall(r'@app\.(get|post)\(\s*"([^"]+)"', source.read_text())
    }
    described = HTTP.partition("## Routes")[2].partition("More fields of")[0]
    assert len(declared) > 15
    assert declared <= set(re.findall(r"`((?:GET|POST) /[^`?]*)", described))


def test_the_fields_of_a_call_over_http_are_there() -> None:
    said = table(HTTP, "More fields of")
    assert {"skill", "arguments", "caller", *said} == set(CallBody.model_fields)


@pytest.mark.parametrize(
    ("looked_for", "page", "heading"),
    [
        ("a skill from a skill", "docs/writing-skills.md", "Skills that use skills"),
        ("frame and labels of detections", "docs/blueprints.md", "What the stock streams carry"),
        ("In, Out and Module", "docs/blueprints.md", "Modules"),
        ("keys of a blueprint", "docs/blueprints.md", "Keys of a file"),
        ("entry points", "docs/blueprints.md", "Entry points"),
        ("people and scenes", "docs/simulator.md", "A scene of your own"),
        ("a detector of your own", "docs/extend.md", "A detector"),
        ("encodings of pictures", "docs/blueprints.md", "What the stock streams carry"),
        ("the HTTP API", "docs/http.md", "Routes"),
    ],
)
def test_readme_leads_there_by_name(looked_for: str, page: str, heading: str) -> None:
    """One click, to the heading itself."""
    anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
    assert f"[{looked_for}]({page}#{anchor})" in (ROOT / "README.md").read_text()
    assert re.search(rf"^##+ {re.escape(heading)}$", (ROOT / page).read_text(), re.MULTILINE)
