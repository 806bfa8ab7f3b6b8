"""Gates of the user's own: their place among the others, and what becomes of those with a bug."""

from __future__ import annotations

import asyncio
import functools
import math
from pathlib import Path
from types import MethodType
from typing import Any

import pytest

from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.agent.policies.users_gates import load_gate
from dimos_streams.errors import UserError
from tests.agent.policies.gate_bench import GateBench


class Doubling:
    """A user's gate: twice the distance."""

    async def review(self, request: CallRequest) -> Verdict:
        return Allow({**request.arguments, "distance_m": request.arguments["distance_m"] * 2}, request.on_duplicate)


class NotAGate:
    """Has no review."""


class Hasty:
    """A gate that nobody can wait for."""

    def review(self, request: CallRequest) -> Verdict:
        return Allow(request.arguments)


class Curious:
    """A gate that wants to know more than it is told."""

    async def review(self, request: CallRequest, why: str) -> Verdict:
        return Refuse(why)


class Failing:
    """A gate with a bug."""

    async def review(self, request: CallRequest) -> Verdict:
        raise RuntimeError("a bug")


class Cancelled:
    """A gate that asks a service, whose answer somebody has cancelled."""

    async def review(self, request: CallRequest) -> Verdict:
        answer = asyncio.get_running_loop().create_future()
        answer.cancel()
        await answer
        return Allow(request.arguments)


class Miserly:
    """A gate that fails where it is to take something back."""

    async def review(self, request: CallRequest) -> Verdict:
        return Allow(request.arguments, give_back={}.popitem)  # type: ignore[arg-type]


class Counting:
    """A gate that allows so many calls."""

    left = 0

    async def review(self, request: CallRequest) -> Verdict:
        Counting.left -= 1
        return Allow(request.arguments, give_back=self._give_back)

    def _give_back(self) -> None:
        Counting.left += 1


def _given_why(review: Any) -> Any:
    @functools.wraps(review)
    async def given(self: object, request: CallRequest) -> Verdict:
        verdict: Verdict = await review(self, request, "a reason")
        return verdict

    return given


class Told:
    """A gate that a decorator tells more."""

    @_given_why
    async def review(self, request: CallRequest, why: str) -> Verdict:
        return Refuse(why)


def _passed_on(review: Any) -> Any:
    @functools.wraps(review)
    def given(self: object, request: CallRequest) -> Any:
        return review(self, request)

    return given


class PassedOn:
    """A gate whose decorator is no coroutine itself, but returns one."""

    @_passed_on
    async def review(self, request: CallRequest) -> Verdict:
        return Refuse("passed on")


class CompiledReview:
    """A function that is none of Python's own, as compilers make them."""

    async def __call__(self, gate: object, request: CallRequest) -> Verdict:
        return Refuse("compiled")


class Compiled:
    """A gate with such a method."""

    def __init__(self) -> None:
        self.review = MethodType(CompiledReview(), self)


class FailingLater:
    """A gate whose second look at the world has a bug."""

    async def review(self, request: CallRequest) -> Verdict:
        answers = iter([None])
        return Allow(request.arguments, again=lambda arguments: next(answers))


@pytest.mark.virtual_time
async def test_the_order_is_as_documented() -> None:
    bench = GateBench(gates=[f"{__name__}:Doubling"])
    names = [type(gate).__name__.removesuffix("Gate") for gate in bench.chain.gates]
    documented = (Path(__file__).parents[3] / "docs" / "gates.md").read_text()
    listed = [line.split("`")[1] for line in documented.splitlines() if line[:1].isdigit() and ". `" in line]
    users = names.index("Doubling")
    assert [*names[:users], "your own", *names[users + 1 :]] == listed, "docs/gates.md lists the gates"


@pytest.mark.virtual_time
async def test_users_gates_come_before_plans_and_what_they_change_is_checked() -> None:
    bench = GateBench(gates=[f"{__name__}:Doubling"], plan={"motions": 0})
    await bench.approved(("move", {"distance_m": 2}))
    allowed = await bench.review(policy={"motion": True}, distance_m=1)
    assert isinstance(allowed, Allow)
    assert allowed.arguments == {"distance_m": 2}
    text = await bench.review("say")
    assert isinstance(text, Refuse)
    assert "the gate Doubling failed (KeyError" in text.text


@pytest.mark.virtual_time
async def test_a_gate_that_fails_lets_nothing_pass() -> None:
    verdict = await GateBench(gates=[f"{__name__}:Failing"]).review()
    assert isinstance(verdict, Refuse)
    assert "RuntimeError: a bug" in verdict.text


@pytest.mark.virtual_time
async def test_a_gate_that_fails_to_take_back_keeps_no_other_from_it() -> None:
    Counting.left = 5
    bench = GateBench(gates=[f"{__name__}:{name}" for name in ("Counting", "Miserly", "Told")])
    assert await bench.review() == Refuse("a reason")
    assert Counting.left == 5
    allowed = await GateBench(gates=[f"{__name__}:{name}" for name in ("Counting", "Miserly")]).review()
    assert isinstance(allowed, Allow)
    allowed.give_back()
    assert Counting.left == 5


@pytest.mark.virtual_time
async def test_a_review_need_be_no_function_of_python_and_not_itself_async() -> None:
    assert await GateBench(gates=[f"{__name__}:Compiled"]).review() == Refuse("compiled")
    assert await GateBench(gates=[f"{__name__}:PassedOn"]).review() == Refuse("passed on")


@pytest.mark.virtual_time
async def test_a_gate_that_fails_right_before_the_call_begins_lets_nothing_pass() -> None:
    verdict = await GateBench(gates=[f"{__name__}:FailingLater"]).review()
    assert isinstance(verdict, Allow)
    refusal = await verdict.last_look()
    assert refusal is not None
    assert "the gate FailingLater failed (StopIteration" in refusal.text


@pytest.mark.virtual_time
async def test_a_gate_in_which_something_was_cancelled_lets_nothing_pass_and_ends_nothing_else() -> None:
    verdict = await GateBench(gates=[f"{__name__}:Cancelled"]).review()
    assert isinstance(verdict, Refuse)
    assert "the gate Cancelled failed (RuntimeError: it ended because something that it awaited was" in verdict.text


class Answering:
    """A gate that answers what it is told to."""

    answer: Any = None

    async def review(self, request: CallRequest) -> Verdict:
        given: Verdict = self.answer
        return given


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "gave no answer that can be used (it is neither Allow nor Refuse: None)"),
        (Refuse(5), "gave no answer that can be used (its Refuse has text=5)"),  # type: ignore[arg-type]
        (Refuse(" "), "its Refuse has text=' '"),
        (Allow("x"), "its Allow has arguments='x'"),  # type: ignore[arg-type]
        (Allow({}, "replac"), "its Allow has on_duplicate='replac'"),  # type: ignore[arg-type]
        (Allow({}, note=5), "its Allow has note=5"),  # type: ignore[arg-type]
        (Allow({}, again=lambda arguments: "no"), "again() gives 'no'"),  # type: ignore[arg-type, return-value]
        (Allow({}, again=lambda arguments: Refuse("")), "its Refuse has text=''"),
    ],
)
async def test_an_answer_that_is_none_lets_nothing_pass_and_names_its_gate(
    monkeypatch: pytest.MonkeyPatch, answer: object, why: str
) -> None:
    monkeypatch.setattr(Answering, "answer", answer)
    verdict = await GateBench(gates=[f"{__name__}:Answering"]).review()
    assert isinstance(verdict, Refuse)
    assert why in verdict.text
    assert verdict.text.startswith("Not run: the gate Answering gave no answer that can be used (")


@pytest.mark.virtual_time
async def test_a_number_that_json_lacks_is_no_argument_that_a_gate_can_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answering, "answer", Allow({"distance_m": math.nan}))
    verdict = await GateBench(gates=[f"{__name__}:Answering"]).review()
    assert isinstance(verdict, Refuse)
    assert "distance_m: it must be a finite number (given: nan)" in verdict.text


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("nonsense", "not of the form"),
        ("no.such.place:Gate", "can't be imported"),
        (f"{__name__}:Doublin", "did you mean 'Doubling'"),
        (f"{__name__}:NotAGate", "no method 'review'"),
        (f"{__name__}:Hasty", "its review must be `async def`"),
        (f"{__name__}:Curious", "its review can't be given a request alone: missing a required argument: 'why'"),
        (f"{__name__}:GateBench.x", "not of the form"),
        (f"{__name__}:pytest", "can't be made"),
    ],
)
def test_a_gate_that_can_not_be_loaded_is_named(reference: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        load_gate(reference)
