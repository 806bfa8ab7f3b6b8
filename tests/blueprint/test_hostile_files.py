"""Blueprint files that somebody made to keep a reader busy, or that are damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.merging import MAX_MODULES
from dimos_streams.documents.document import MAX_BYTES, MAX_VALUES, read_document, value_of
from dimos_streams.documents.problem import BlueprintError
from dimos_streams.errors import UserError
from tests.blueprint.checked import check_reference
from tests.blueprint.conftest import Write

CAMERA = "type: tests.blueprint.toy_modules:Camera"


def line_of(write: Write, text: str) -> str:
    with pytest.raises(BlueprintError) as error:
        resolve(write("hostile.yaml", text))
    return str(error.value)


@pytest.mark.slow
def test_aliases_count_with_all_that_they_stand_for(write: Write) -> None:
    levels = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    expected = f"hostile.yaml:1: it stands for more than {MAX_VALUES} values, aliases counted in full"
    assert line_of(write, "\n".join(levels)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[&a [1,1,1,1,1,1,1,1], &b [*a,*a,*a,*a,*a,*a], &c [*b,*b,*b,*b,*b,*b], *c, *c, *c]",
        "- &a [1,1,1,1,1,1,1,1]\n- &b [*a,*a,*a,*a,*a,*a]\n- &c [*b,*b,*b,*b,*b,*b]\n- [*c,*c,*c]",
        f"[&a {'a' * 5000}{', *a' * 200}]",
        f"[&a {{{'a' * 900}: 1}}{', *a' * 1200}]",
    ],
)
def test_the_aliases_of_a_single_value_stand_for_as_much_as_its_length_lets_expect(text: str) -> None:
    assert value_of(text) == (
        text,
        f"it stands for more than {1000 + len(text)} values, aliases counted in full",
    )


@pytest.mark.parametrize("text", [f"[{','.join('1' * 1500)}]", "[&a {x: 1, y: 2}, *a, *a]", f"[{'a' * 50_000}]"])
def test_an_honest_single_value_meets_no_bound(text: str) -> None:
    value, why = value_of(text)
    assert why == ""
    assert isinstance(value, list)


@pytest.mark.parametrize("text", ["modules: &all {camera: *all}", f"description: {'[' * 300}{']' * 300}"])
def test_depth_is_bounded(write: Write, text: str) -> None:
    assert line_of(write, text).startswith("hostile.yaml:1: values are nested deeper than 100")


@pytest.mark.parametrize("opening", ["[", "{a: ", "[{? "])
def test_what_is_nested_too_deeply_is_read_no_further(opening: str) -> None:
    assert value_of(opening * 2000)[1].startswith("values are nested deeper than 100")
    assert value_of(f"{'[' * 101}{']' * 101}")[1] == ""


def test_an_integer_that_python_does_not_read(write: Write) -> None:
    text = f"modules:\n  camera:\n    {CAMERA}\n    config:\n      rate_hz: {'9' * 5000}\n"
    line = line_of(write, text)
    assert line.startswith("hostile.yaml:5: '9999999")
    assert "digits" in line
    assert len(line) < 300


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('!!int ""', "2: '' can't be read: it is no value of the tag !!int"),
        ('!!float ""', "2: '' can't be read: it is no value of the tag !!float"),
        ("!!bool perhaps", "2: 'perhaps' can't be read: it is no value of the tag !!bool"),
        ("!!set x", "2: 'x' can't be read: the tag !!set makes no text, number or truth value of it"),
        ("!!binary AAAA", "2: 'AAAA' can't be read: the tag !!binary makes no text, number or truth value of it"),
        (f"!!float 1.{'1' * 20_000}", "2: '1.11111111111111111111111111111111111...' can't be read: it has 20002 "),
        ('"\\U00110000"', " not valid YAML: chr() arg not in range(0x110000)"),
        ('"\\UFFFFFFFF"', " not valid YAML: "),
    ],
)
def test_what_a_tag_or_an_escape_makes_no_value_of(write: Write, value: str, why: str) -> None:
    assert line_of(write, f"name: x\ndescription: {value}\n").startswith(f"hostile.yaml:{why}")


@pytest.mark.parametrize("version", ["1.1", "1.0", "1.3", "2.0"])
def test_a_file_of_another_yaml_is_not_read_as_if_its_words_meant_the_same(write: Write, version: str) -> None:
    # On is true in YAML 1.1, 0777 is 511, and 1:1 a number of base 60, which takes the square of its length.
    line = line_of(write, f"%TAG !a! tag:a,2026:\n%YAML {version}\n---\nname: on\ndescription: 1{':1' * 20_000}\n")
    assert line == (
        f"hostile.yaml:2: not valid YAML: it is to be YAML {version}, and is read as YAML 1.2: leave that line out"
    )


def test_a_file_may_say_that_it_is_yaml_of_today(write: Write) -> None:
    assert resolve(write("x.yaml", "%YAML 1.2\n---\nname: on\n")).name == "on"


def test_a_file_that_is_too_large_is_not_read(write: Write) -> None:
    with pytest.raises(UserError, match=rf"'large.yaml' has {MAX_BYTES + 1} bytes, {MAX_BYTES} are possible"):
        resolve(write("large.yaml", "#" * (MAX_BYTES + 1)))


def test_a_file_of_another_encoding_is_told_by_the_line_and_byte(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_bytes("name: old\ndescription: café\n".encode("cp1252"))
    with pytest.raises(BlueprintError, match=r"old\.yaml:2: it is not UTF-8 \(byte 0xe9\): save it as UTF-8$"):
        read_document(tmp_path / "old.yaml")


@pytest.mark.slow
def test_files_that_include_each_other_twice_and_again(write: Write) -> None:
    for level in range(30):
        includes = [f"  - {{blueprint: inc{level + 1}.yaml, namespace: {side}}}" for side in ("left", "right")]
        write(f"inc{level}.yaml", "\n".join(["include:", *includes]))
    write("inc30.yaml", f"modules: {{camera: {{{CAMERA}}}}}")
    with pytest.raises(BlueprintError) as error:
        resolve("inc0.yaml")
    assert {line.partition(": ")[2] for line in str(error.value).split("\n")} == {
        f"blueprint 'inc17' has more than {MAX_MODULES} modules"
    }


@pytest.mark.slow
def test_each_module_knows_its_own_lines_only(write: Write) -> None:
    modules = "\n".join(f"  camera{n}:\n    {CAMERA}\n    namespace: n{n}" for n in range(300))
    blueprint, problems = check_reference(write("many.yaml", f"modules:\n{modules}\n"))
    assert problems == []
    assert blueprint is not None
    assert len(blueprint.modules) == 300
    assert all(len(spec.sources) == 3 for spec in blueprint.modules.values())
