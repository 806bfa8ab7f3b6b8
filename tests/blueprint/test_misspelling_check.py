"""Topics and resources that have one user only, because they are misspelt."""

from __future__ import annotations

import pytest

from dimos_streams.blueprint import blueprint, include, module
from dimos_streams.blueprint.check import check
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.stock import stock_blueprints
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.messages.sensor_msgs import Image, LaserScan
from dimos_streams.module import Module
from dimos_streams.skill import skill
from dimos_streams.streams import In, Out
from tests.blueprint import toy_modules
from tests.blueprint.checked import found_in
from tests.blueprint.conftest import Write

HERE = __name__
TOYS = "tests.blueprint.toy_modules"
IMAGE = "color_image#sensor_msgs.Image"
TWIST = "geometry_msgs.Twist"


class Engine(Module):
    """Takes velocities under a name of its own."""

    skill_vel: In[Twist] = In(required=False)
    scann: In[LaserScan] = In(required=False)


class Driver(Module):
    """Publishes on a topic that is nearly the engine's."""

    skill_vell: Out[Twist]


class Lidar(Module):
    scan: Out[LaserScan]


class Reader(Module):
    scan: In[LaserScan]


class Album(Module):
    """Has outputs that nobody reads."""

    skill_vell: Out[Image]
    skill_vel2: Out[Twist]
    other_vel: Out[Twist]


WALKER = f"""\
external: [{IMAGE}]
modules:
  engine: {{type: '{HERE}:Engine'}}
  walk:
    type: {TOYS}:Walk
    remap: {{cmd_vel: TARGET}}
"""


def texts(*parts: object, **options: object) -> list[str]:
    return [problem.text for problem in check(blueprint("x", *parts, **options))]  # type: ignore[arg-type]


def test_an_output_that_is_remapped_to_a_misspelt_topic_is_warned_of(write: Write) -> None:
    assert found_in(write, WALKER.replace("TARGET", "skill_vell")) == [
        f"x.yaml:6: warning: nothing takes '/skill_vell#{TWIST}', to which walk.cmd_vel publishes;"
        " did you mean '/skill_vel'?"
    ]


@pytest.mark.parametrize("target", ["skill_vel", "cmd_vel", "wheels", "skill_vel2", "/other/skill_vel"])
def test_an_output_that_is_read_or_has_a_name_of_its_own_is_fine(write: Write, target: str) -> None:
    assert found_in(write, WALKER.replace("TARGET", target)) == []


def test_what_is_external_is_left_to_who_says_so(write: Write) -> None:
    text = WALKER.replace("TARGET", "wheels").replace(IMAGE, f"{IMAGE}, wheels#{TWIST}")
    assert found_in(write, text) == []


def test_a_misspelt_external_channel_is_warned_of(write: Write) -> None:
    text = WALKER.replace("TARGET", "wheels").replace(IMAGE, f"{IMAGE}, skil_vel#{TWIST}")
    assert found_in(write, text) == [
        f"x.yaml:1: warning: nothing takes '/skil_vel#{TWIST}', which is external; did you mean '/skill_vel'?"
    ]


def test_a_misspelt_output_of_a_class_is_warned_of_once() -> None:
    assert texts(module(Engine), module(Driver)) == [
        f"nothing takes '/skill_vell#{TWIST}', to which driver.skill_vell publishes; did you mean '/skill_vel'?"
    ]


def test_a_misspelt_optional_input_is_warned_of() -> None:
    assert texts(module(Engine), module(Lidar), module(Reader)) == [
        "nothing sends '/scann#sensor_msgs.LaserScan', which engine.scann takes; did you mean '/scan'?"
    ]


def test_other_types_and_numbered_names_are_no_slips() -> None:
    assert texts(module(Engine), module(Album)) == []


def test_a_topic_of_another_robot_is_never_meant() -> None:
    one = blueprint("one", module(Engine))
    other = blueprint("other", module(toy_modules.Sharing, remap={"cmd_vel": "skill_vel"}))
    assert texts(include(one, namespace="ann"), include(other, namespace="anne")) == []
    both = blueprint("both", module(Engine), module(toy_modules.Sharing, remap={"cmd_vel": "/an/skill_vel"}))
    (text,) = texts(include(both, namespace="ann"))
    assert text.endswith("did you mean '/ann/skill_vel'?")


def test_a_misspelt_name_is_judged_only_when_every_module_is_known(write: Write) -> None:
    text = WALKER.replace("TARGET", "skill_vell") + f"  gone: {{type: '{TOYS}:Gone'}}\n"
    assert not any("did you mean '/skill_vel'" in line for line in found_in(write, text))


class Arm(Module):
    @skill(resources={"base"})
    async def drive(self) -> None:
        """Drive."""

    @skill(resources={"base", "arm1"})
    async def reach(self) -> None:
        """Reach out."""

    @skill(resources={"arm2", "grip_l"})
    async def wave(self) -> None:
        """Wave."""


class Tail(Module):
    @skill(resources={"bse", "grip_r"})
    async def wag(self) -> None:
        """Wag."""


class Tongue(Module):
    @skill(resources={"bse"})
    async def lick(self) -> None:
        """Lick."""


class Head(Module):
    @skill(resources={"neck"})
    async def nod(self) -> None:
        """Nod."""

    @skill(resources={"necck"})
    async def shake(self) -> None:
        """Shake."""


def test_a_resource_that_one_skill_alone_holds_and_misspells_is_warned_of() -> None:
    (text,) = texts(module(Arm), module(Tail))
    assert text == f"module 'tail': {HERE}:Tail: no other skill than 'wag' holds 'bse'; did you mean 'base'?"
    (text,) = texts(include(blueprint("cat", module(Arm), module(Tail)), namespace="cat"))
    assert text.startswith("module 'cat/tail': ")
    assert text.endswith("no other skill than 'wag' holds 'bse'; did you mean 'base'?")


def test_of_two_resources_that_one_skill_each_holds_the_later_is_warned_of() -> None:
    (text,) = texts(module(Head))
    assert text.endswith("no other skill than 'shake' holds 'necck'; did you mean 'neck'?")


def test_resources_that_several_skills_hold_or_another_robot_has_are_fine() -> None:
    assert texts(module(Arm), module(Tail), module(Tongue)) == []
    assert texts(include(blueprint("cat", module(Arm)), namespace="cat"), module(Tail)) == []


@pytest.mark.parametrize("name", sorted(stock_blueprints()))
def test_stock_blueprints_misspell_nothing(name: str) -> None:
    found = [problem.text for problem in check(resolve(name))]
    assert not [text for text in found if "nothing takes" in text or "nothing sends" in text or "holds" in text]
