"""Which settings may change while their module runs, and what may not be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

import pytest
from pydantic import Field, SecretBytes, SecretStr, create_model, model_validator

from dimos_streams.errors import SettingsError
from dimos_streams.live_settings import Live, changes, live_settings, with_assignments
from dimos_streams.module import ConfigFault, Module, ModuleConfig
from dimos_streams.tool_stream.hosting.settings_change import change_settings

pytestmark = pytest.mark.feature("K4")


class Arm(ModuleConfig):
    reach_m: float = 0.5
    grip: Literal["soft", "firm"] = "soft"
    key: SecretStr = SecretStr("none of yours")
    keys: tuple[SecretStr | None, ...] = ()
    door_password: str = ""
    credentials: Mapping[str, str] = {}


class KettleConfig(ModuleConfig):
    low: Annotated[float, Live] = Field(20.0, ge=0.0)
    high: Annotated[float, Live] = Field(100.0, le=120.0)
    label: Annotated[str | None, Live] = None
    tags: Annotated[tuple[str, ...], Live] = ()
    arm: Annotated[Arm, Live] = Arm()
    spare: Arm = Arm()
    port: int = 1
    heads: Annotated[tuple[Arm, ...], Live] = ()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low is {self.low:g}, more than high, {self.high:g}")
        return self


def test_what_is_marked_is_live_and_what_is_inside_too_but_no_secret() -> None:
    assert live_settings(KettleConfig) == ("low", "high", "label", "tags", "arm.reach_m", "arm.grip", "heads")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("door_password", str),
        ("door_password", Annotated[str | None, Field(max_length=3)]),
        ("credentials", Arm),
        ("key", SecretStr),
        ("keys", tuple[SecretBytes, ...] | None),
    ],
)
def test_a_secret_can_t_be_declared_live(name: str, kind: Any) -> None:
    fields: dict[str, Any] = {name: (Annotated[kind, Live], ...)}
    with pytest.raises(
        TypeError, match=f"^{name}: a secret can't be Live, because a change is shown; valid: no Live"
    ):
        create_model("Config", __base__=ModuleConfig, **fields)


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("low", "30", 30.0),
        ("label", "tea", "tea"),
        ("label", "123", "123"),
        ("label", "null", None),
        ("tags", "[a, b]", ("a", "b")),
        ("arm.reach_m", "0.75", 0.75),
        ("arm.grip", "firm", "firm"),
    ],
)
def test_values_are_read_as_yaml_or_as_text_where_that_does_not_fit(path: str, text: str, value: object) -> None:
    changed = with_assignments(KettleConfig.model_validate({}), {path: text})
    found: object = changed
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value
    assert list(changes(KettleConfig.model_validate({}), changed)) == (
        [path] if path != "label" or text != "null" else []
    )


def test_constraints_across_settings_hold_for_all_of_a_change_together() -> None:
    with pytest.raises(SettingsError, match=r"^low is 110, more than high, 100$"):
        with_assignments(KettleConfig.model_validate({}), {"low": "110"})
    both = with_assignments(KettleConfig.model_validate({}), {"low": "110", "high": "115"})
    assert (both.low, both.high) == (110.0, 115.0)


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        (
            "lo",
            "1",
            "there is no such setting; did you mean 'low'? (live: low, high, label, tags, arm.reach_m,",
        ),
        (
            "port",
            "2",
            "it does not change while its module runs, only by `run --set` or in the blueprint (live:",
        ),
        ("spare.reach_m", "2", "it does not change while its module runs"),
        ("arm.key", "secret-of-mine", "it does not change while its module runs"),
        ("arm.keys", "[secret-of-mine]", "it does not change while its module runs"),
        ("arm.door_password", "secret-of-mine", "it does not change while its module runs"),
        ("arm.credentials", "{a: secret-of-mine}", "it does not change while its module runs"),
        ("arm", "{}", "it does not change while its module runs"),
        ("heads.0.reach_m", "2", "'heads' changes as a whole (live: low, high,"),
        ("arm.credentials.a", "b", "it does not change while its module runs"),
        ("low", "-3", "it must be at least 0 (given: -3)"),
        ("low", "warm", "it must be a number (given: 'warm')"),
        ("low", "", "it must be a number (given: '')"),
        ("heads", "{reach_m: 1, reach_m: 2}", "key 'reach_m' is there twice"),
        ("heads", "[{reach_m: 1}", "not valid YAML: "),
        ("arm.grip", "wild", "it must be 'soft' or 'firm' (given: 'wild')"),
    ],
)
def test_what_can_t_be_is_named_with_what_could(path: str, text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        with_assignments(KettleConfig.model_validate({}), {path: text, "high": "90"})
    assert list(refused.value.problems) == [path]
    assert refused.value.problems[path].startswith(problem)


def test_a_config_without_any_says_so() -> None:
    with pytest.raises(SettingsError, match=r"^reach_m: it does not change .* \(its module has none that is live\)$"):
        with_assignments(Arm(), {"reach_m": "1"})


class Kettle(Module):
    """Its author has not thought of every label."""

    config: KettleConfig

    @classmethod
    def problems(cls, config: Any) -> Iterable[ConfigFault]:
        if config.label is not None and config.label[0].isdigit():
            yield ConfigFault(("label",), "it must not begin with a digit")
        if len(config.tags) > 2:
            yield ConfigFault(("tags", 2), "two are enough")  # type: ignore[arg-type]


def test_what_an_authors_check_refuses_is_not_set_nor_what_it_fails_at() -> None:
    kettle = Kettle()
    with pytest.raises(SettingsError, match=r"^label: it must not begin with a digit$"):
        change_settings(kettle, {"label": "'1'"})
    with pytest.raises(SettingsError, match=r"^tags\.2: two are enough$"):
        change_settings(kettle, {"tags": "[a, b, c]"})
    with pytest.raises(
        SettingsError, match=r"'Kettle': its problems\(config\) fails \(IndexError: string index out of"
    ):
        change_settings(kettle, {"label": "''"})
    assert kettle.config.label is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("heads", "[{key: secret-of-mine}]"),
        ("heads", "[{door_password: secret-of-mine}]"),
        ("label", "http://ann:secret-of-mine@h/"),
    ],
)
def test_a_module_does_not_take_what_would_show_a_secret(path: str, text: str) -> None:
    kettle = Kettle()
    with pytest.raises(SettingsError, match=f"^{path}: it is or has a secret, and a change is shown: give it by the"):
        change_settings(kettle, {path: text})
    assert kettle.live_values == {}
