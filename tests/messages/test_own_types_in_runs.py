"""The check of own message types, and runs that send, record and replay them."""

from __future__ import annotations

import importlib
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dimos_streams.blueprint import Blueprint, blueprint, module
from dimos_streams.blueprint.check import check
from dimos_streams.bus.memory import MemoryBus
from dimos_streams.cli.app import create_app
from dimos_streams.clock import run_virtual
from dimos_streams.common.importing import generate_command
from dimos_streams.errors import UserError
from dimos_streams.messages import registry
from dimos_streams.messages.generation import definitions
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.summary import summarize
from dimos_streams.testing import MissionRun, ModuleHarness
from tests.messages.own_types import WIND, Package

pytestmark = [pytest.mark.feature("K2"), pytest.mark.usefixtures("lcm_library")]

STATION = '''
import asyncio

from {types} import Reading, Wind

from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.streams import In, Out


class Station(Module):
    readings: Out[Reading]

    @skill
    async def measure(self, call: Call) -> str:
        """Measure."""
        for speed in (1.0, 2.0):
            wind, reading = Wind(), Reading()
            wind.speed, reading.winds, reading.raw = speed, [wind], bytes(4)
            self.readings.publish(reading)
            await asyncio.sleep(0.1)
        return "measured"


class Watch(Module):
    readings: In[Reading] = In(queue=8)

    @skill
    async def strongest(self, call: Call) -> float:
        """The strongest wind of the next two readings."""
        await call.update("watching")
        found = [await self.readings.next() for _ in range(2)]
        assert all(isinstance(reading, Reading) for reading in found)
        return max(wind.speed for reading in found for wind in reading.winds)
'''


def station(package: Package, types: str = "weather.messages.weather_msgs") -> Blueprint:
    (package.root / "station.py").write_text(STATION.format(types=types))
    bridge = module("dimos_streams.bridge.module:Bridge", name="bridge")
    return blueprint("station", module("station:Station"), module("station:Watch"), bridge)


def texts(described: Blueprint) -> list[str]:
    return [str(problem) for problem in check(described)]


@pytest.mark.parametrize("plain", [False, True])
def test_own_types_are_sent_recorded_and_decoded(plain: bool, package: Package) -> None:
    package.define()
    if plain:
        package.lcm_gen()
    else:
        package.generate()
    described = station(package, "weather_msgs" if plain else "weather.messages.weather_msgs")
    assert texts(described) == []
    log = package.root / "day.lcmlog"

    async def scenario() -> list[Any]:
        async with MissionRun(described, record=log) as run:
            watching = await run.call("strongest")
            await watching.answer()
            await (await run.call("measure")).result()
            assert await watching.result() == 2.0
            return run.topic("/readings").messages

    assert [reading.winds[0].speed for reading in run_virtual(scenario())] == [1.0, 2.0]
    with LogReader(log) as reader:
        summary = summarize([reader])
    assert summary.channels["/readings#weather_msgs.Reading"].to_dict(0)["known"]
    assert summary.metadata is not None
    assert summary.metadata.messages["weather_msgs.Wind"]["fields"] == [["speed", "double", None]]


def test_a_harness_takes_plain_classes(package: Package) -> None:
    package.define()
    package.lcm_gen()
    station(package, "weather_msgs")
    found: Any = importlib.import_module("station")

    async def scenario() -> Any:
        async with ModuleHarness(found.Watch) as harness:
            call = await harness.call("strongest")
            await call.answer()
            for speed in (4.0, 3.0):
                reading = found.Reading()
                reading.raw, reading.winds = bytes(4), [found.Wind()]
                reading.winds[0].speed = speed
                harness.feed("readings", reading)
            return await call.result()

    assert run_virtual(scenario()) == 4.0


def test_another_type_on_an_output_is_named(package: Package) -> None:
    package.define()
    package.generate()
    station(package)
    found: Any = importlib.import_module("station")
    output = found.Station().readings
    output.connect(MemoryBus(), "/readings")
    with pytest.raises(TypeError, match=r"output 'readings' takes weather_msgs\.Reading, not Wind"):
        output.publish(found.Wind())


def test_check_refuses_classes_that_are_not_fresh(package: Package) -> None:
    package.define()
    package.generate()
    described = station(package)
    assert texts(described) == []
    package.define(
        {"weather_msgs/Wind.lcm": WIND.replace("double speed;", "// New.\n    float gust;\n    double speed;")}
    )
    wind = package.messages / "weather_msgs" / "Wind.lcm"
    assert texts(described) == [
        f"{wind}:7: weather_msgs.Wind: 'gust' is not in the generated class: "
        f"run `dimos-streams messages generate {package.messages}`"
    ]
    package.define({"weather_msgs/Wind.lcm": WIND.replace("double speed", "float speed")})
    assert texts(described)[0].startswith(f"{wind}:6: weather_msgs.Wind: 'speed' is of another type there")
    package.define({"weather_msgs/Wind.lcm": WIND.replace("STORM = 12", "STORM = 11")})
    assert texts(described)[0].startswith(f"{wind}:5: weather_msgs.Wind: 'STORM' is not 11 in the generated class")
    package.define({"weather_msgs/Wind.lcm": WIND.replace("double speed;", "double speed")})
    assert texts(described) == [f"{wind}:7: expected token ;"]


def test_without_lcm_gen_check_warns(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    package.define()
    package.generate()
    described = station(package)
    broken = package.root / "lcm-gen"
    broken.write_text("#!/bin/sh\necho 'error while loading shared libraries: libglib' >&2; exit 127\n")
    broken.chmod(0o755)
    monkeypatch.setattr(definitions, "lcm_gen", lambda: broken)
    [problem] = check(described)
    assert problem.severity == "warning"
    assert "is not known: lcm-gen failed: error while loading shared libraries: libglib" in problem.text


def test_check_names_a_definition_that_has_no_class_yet(package: Package) -> None:
    package.define()
    package.generate()
    package.define({"weather_msgs/Snow.lcm": "package weather_msgs;\nstruct Snow { float depth; }"})
    (package.root / "snow.py").write_text("from weather.messages.weather_msgs import Snow\n")
    [text] = texts(blueprint("snow", module("snow:Plough")))
    assert "has message definitions (Snow.lcm) but no classes: run `dimos-streams messages generate" in text


def test_check_says_that_code_is_not_generated(package: Package) -> None:
    package.define()
    described = station(package)
    assert texts(described)[0].endswith(
        f"{str(package.messages / 'weather_msgs')!r} has message definitions (Reading.lcm, Wind.lcm) but no classes: "
        f"run `dimos-streams messages generate {package.messages}` ({package.root / 'station.py'}:4)"
    )


def test_check_refuses_two_definitions_of_one_name(package: Package) -> None:
    package.define()
    package.generate()
    described = station(package)
    other = """
from dimos_streams.module import Module
from dimos_streams.streams import Out
from lcmtypes.weather_msgs import Wind, Reading
from lcmtypes.std_msgs import Bool


class Other(Module):
    winds: Out[Wind]
    far: Out[Reading]
    flag: Out[Bool]
"""
    (package.root / "other.py").write_text(other)
    package.define({"weather_msgs/Wind.lcm": WIND.replace("double", "float"), "std_msgs/Bool.lcm": ODD_BOOL})
    package.lcm_gen("--package-prefix", "lcmtypes")
    (package.messages / "std_msgs" / "Bool.lcm").unlink()
    package.define()
    both = blueprint("both", *[module(f"station:{name}") for name in ("Station", "Watch")], module("other:Other"))
    assert described.modules
    reading, flag = [text for text in texts(both) if " definitions: " in text and "Wind'" not in text]
    assert "message type 'weather_msgs.Reading' has 2 definitions: weather.messages.weather_msgs.Reading" in reading
    assert "of station.readings, watch.readings; lcmtypes.weather_msgs.Reading (fingerprint" in reading
    assert "lcmtypes.std_msgs.Bool" in flag
    assert "dimos_streams.messages.std_msgs.Bool" in flag


ODD_BOOL = "package std_msgs;\nstruct Bool { int8_t data; }"


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        ("Out[int]", r"Odd\.out must name an LCM message type, as in In\[Twist\], not int: a class of"),
        ("Out[Grid]", r"Odd\.out: p\.Grid\.x has 2 dimensions; arrays must have one"),
        ("Out[Missing]", r"Odd: an annotation can't be resolved: name 'Missing' is not defined"),
    ],
)
def test_check_names_what_can_not_be_a_stream(annotation: str, complaint: str, package: Package) -> None:
    package.define({"p/Grid.lcm": "package p;\nstruct Grid { double x[2][3]; }"})
    package.lcm_gen()
    lines = ["from __future__ import annotations", "from dimos_streams.module import Module"]
    lines += [
        "from dimos_streams.streams import Out",
        "from p import Grid",
        f"class Odd(Module):\n    out: {annotation}",
    ]
    (package.root / "odd.py").write_text("\n".join(lines))
    (package.root / "odd.yaml").write_text("name: odd\nmodules:\n  odd: {type: odd:Odd}\n")
    from dimos_streams.blueprint.load import resolve

    [text] = texts(resolve(str(package.root / "odd.yaml")))
    assert text.startswith(f"{package.root / 'odd.yaml'}:3: module 'odd'")
    with pytest.raises(UserError, match=complaint):
        raise UserError(text)


def test_an_external_channel_may_have_an_own_type(package: Package) -> None:
    package.define()
    package.generate()
    found = blueprint("external", module("dimos_streams.bridge.module:Bridge"), external=("/w#weather_msgs.Wind",))
    assert "there is no such message type" in texts(found)[0]
    package.list_in_environment("weather.messages")
    assert registry.find("weather_msgs.Wind") is not None
    assert texts(found) == []


def test_the_command_that_is_named_is_one_for_a_shell() -> None:
    named = generate_command(Path("/home/jörg/my robot"), "robot.messages")
    assert shlex.split(named.strip("`"))[2:] == ["generate", "/home/jörg/my robot", "--package", "robot.messages"]


@pytest.mark.slow
def test_commands_know_own_types(package: Package) -> None:
    package.define()
    folder = str(package.messages)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(create_app(), ["messages", *arguments])

    missing = run("generate", folder, "--check")
    assert (missing.exit_code, missing.output.count("missing: ")) == (1, 7)
    assert f"7 files not fresh: run `dimos-streams messages generate {folder}`" in missing.output
    assert run("generate", folder).output.endswith(f"{folder}: 2 message types, made\n")
    fresh = run("generate", folder, "--check")
    assert (fresh.exit_code, fresh.output) == (0, f"{folder}: 2 message types, fresh\n")

    package.list_in_environment("weather.messages")
    listed = json.loads(run("list", "--json").output)
    assert "weather_msgs.Wind" in [one["name"] for one in listed["types"]]
    assert run("show", "weather_msgs.Reading").output.splitlines()[5] == "  weather_msgs.Wind winds[winds_length]"
    with pytest.raises(UserError, match=r"did you mean 'weather_msgs\.Wind'"):
        raise run("show", "weather_msgs.Win").exception or AssertionError


def test_exports_have_own_types(package: Package) -> None:
    from dimos_streams.foxglove.conversion.message_views import MessageViews
    from dimos_streams.foxglove.conversion.schemas import schema_named
    from dimos_streams.recording.cut import LogPart
    from dimos_streams.recording.export.csv_tables import Rows, csv_lines

    package.define()
    package.lcm_gen()
    described = station(package, "weather_msgs")
    log = package.root / "day.lcmlog"

    async def scenario() -> Any:
        async with MissionRun(described, record=log) as run:
            await (await run.call("measure")).result()
            return run.topic("/readings").last

    [(form, value)] = MessageViews().shown("/readings", run_virtual(scenario()))
    assert (form.schema, value["winds"]) == ("weather_msgs.Reading", [{"speed": 2.0}])
    assert schema_named(form.schema)["properties"]["winds"]["items"]["properties"] == {"speed": {"type": "number"}}
    with LogReader(log) as reader:
        header, first, _ = csv_lines(reader, "/readings", LogPart(), Rows())
    cells = dict(zip(header.split(","), first.split(","), strict=False))
    assert cells["pose.orientation.w"] == "1.0" or cells["pose.orientation.w"] == "0.0"
    assert cells["temperature_c"] == "0.0"


def test_definitions_travel_with_a_package(package: Package) -> None:
    package.define()
    package.generate()
    made = sorted(path.relative_to(package.messages).as_posix() for path in package.messages.rglob("*.py*"))
    assert made == [
        "__init__.py",
        "index.py",
        *(f"weather_msgs/{name}" for name in ("Reading.py", "Reading.pyi", "Wind.py", "Wind.pyi", "__init__.py")),
    ]
    assert all(str(package.root) not in Path(package.messages, name).read_text() for name in made)
