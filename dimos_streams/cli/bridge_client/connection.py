"""The other end of a command: a run of this machine, its bus, its bridge."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.terminal.named_runs import newest_of, refuse_several, runs_called
from dimos_streams.cli.terminal.output import note
from dimos_streams.client.asking_again import UNKNOWN
from dimos_streams.common.process.loopback import BRIDGE_PORT
from dimos_streams.common.schemas.http_url import bridge_url
from dimos_streams.common.text import parse_json
from dimos_streams.errors import (
    CallInDoubtError,
    DimosStreamsError,
    NoAnswerError,
    NoRunError,
    SkillError,
    SkillUnavailableError,
    UserError,
)

if TYPE_CHECKING:
    import requests
    from pydantic import TypeAdapter

    from dimos_streams.client.http_gateway import HttpGateway
    from dimos_streams.runtime.registry import RunRecord

T = TypeVar("T")

_TIMEOUT_S = 3.0


class BridgeUnreachableError(DimosStreamsError):
    """The error if nothing answers at a bridge's address, or no bridge does, or it wants a token."""


@dataclass(frozen=True, slots=True)
class BridgeAddress:
    """The URL of a bridge, and the token that it asks of every request."""

    url: str
    token: str | None = None
    run: RunRecord | None = field(default=None, compare=False)
    """The run of this machine whose bridge it is; None if nobody knows that."""
    is_guess: bool = False
    """True if nobody named it and no run lives that could have: it is the usual one."""

    def gateway(self, gone: Callable[[], Exception | None] = lambda: None) -> HttpGateway:
        """Return a gateway to the bridge, with this person's token and certificates. ``gone`` is as for
        ``HttpGateway``. Raises ``UserError`` for certificates that can't be used."""
        from dimos_streams.cli.bridge_client.certificates import own_tls
        from dimos_streams.client.http_gateway import HttpGateway
        from dimos_streams.client.orders import ANSWER_S

        rng = random.Random(os.getpid())  # nobody needs the jitter of its reconnections to repeat
        tls = own_tls(self.url)
        return HttpGateway(self.url, rng=rng, token=self.sent_token(), timeout_s=ANSWER_S, tls=tls, gone=gone)

    def sent_token(self) -> str | None:
        """Return the token for a request. If it can be read on the way, the person is told once for each host."""
        from dimos_streams.common.http.bearer import overheard_at

        if self.token and (host := overheard_at(self.url)):
            _say_overheard(host)
        return self.token

    async def get(self, path: str, shape: TypeAdapter[T]) -> T:
        """Return the bridge's answer to a GET. Raises ``BridgeUnreachableError``, also if it does not have that
        shape."""
        return await self._ask("GET", path, shape, None, _TIMEOUT_S)

    async def post(
        self, path: str, body: Mapping[str, Any], shape: TypeAdapter[T], *, timeout_s: float, in_doubt: str = UNKNOWN
    ) -> T:
        """Return the bridge's answer to a POST. Raises ``SkillError`` if it refuses, ``CallInDoubtError`` with the
        text ``in_doubt`` if its answer is lost, else as ``get`` does."""
        try:
            return await self._ask("POST", path, shape, body, timeout_s)
        except NoAnswerError as error:
            raise CallInDoubtError(f"{error}; {in_doubt}") from error

    async def _ask(
        self, method: str, path: str, shape: TypeAdapter[T], body: Mapping[str, Any] | None, timeout_s: float
    ) -> T:
        from pydantic import ValidationError

        from dimos_streams.common.invalid import first_problem
        from dimos_streams.common.process.threads import in_own_thread

        answer = await in_own_thread(self._request, method, path, body, timeout_s)
        try:
            return shape.validate_python(answer)
        except ValidationError as error:
            problem = first_problem(error, "its answer")
            raise BridgeUnreachableError(
                f"what answers at {self.url} is no bridge: {method} {path}: {problem}"
            ) from error

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None, timeout_s: float) -> Any:
        from dimos_streams.cli.bridge_client.certificates import CA, own_tls
        from dimos_streams.client.bridge_requests import BridgeRequests
        from dimos_streams.client.http_session import UNTRUSTED, why
        from dimos_streams.client.problems import problem_error

        try:
            requests = BridgeRequests(self.url, token=self.sent_token(), timeout_s=timeout_s, tls=own_tls(self.url))
            response = requests.send(method, path, body)
            if response.status_code == 200:
                return parse_json(response.content)
            if body is not None and response.status_code != 401 and "problem+json" in _type_of(response):
                raise problem_error(parse_json(response.content))
            raise BridgeUnreachableError(self._refused(response))
        except (NoAnswerError, ValueError) as error:
            if body is not None and isinstance(error, NoAnswerError) and error.may_have_arrived:
                raise
            reason = why(error)
            if reason.startswith(UNTRUSTED):
                reason += f"; {CA} names a file of who has signed it"
            raise BridgeUnreachableError(self._unreachable(reason)) from error

    def _refused(self, response: requests.Response) -> str:
        if response.status_code == 401:
            which = "another token than this one" if self.token else "a token"
            return f"the bridge at {self.url} wants {which}: give it with --token or DIMOS_STREAMS_TOKEN"
        status = f"HTTP {response.status_code} {response.reason}"
        return f"what answers at {self.url} is no bridge, or refuses us: {status}"

    def _unreachable(self, reason: str) -> str:
        return (
            f"no bridge answers at {self.url} ({reason[:1].lower()}{reason[1:]}): start a run with"
            " `dimos-streams run BLUEPRINT`, or name another bridge with --url or"
            f" --port{_last_ended() if self.is_guess else ''}"
        )


@functools.cache
def _say_overheard(host: str) -> None:
    note(f"the token goes to {host} unencrypted, and can be read on the way; https:// to a proxy there hides it")


def _type_of(response: requests.Response) -> str:
    return str(response.headers.get("Content-Type", ""))


def find_bridge(choice: BridgeChoice) -> BridgeAddress:
    """Return the bridge of a choice: that of the run, URL or port that it names, else that of the newest living run
    with one, which is said if there are several; if no run lives, the one at the usual port, which is said, too: it
    may be anybody's, and a robot moves by it.

    A living run's token is used if none is given. Raises ``UserError`` for a choice that contradicts itself, and for
    runs that have no bridge, named or not.
    """
    choice.check()
    if choice.run is not None:
        record = find_run(choice.run)
        if (address := bridge_of_run(record, choice.token)) is None:
            raise _bridgeless(record)
        return address
    if choice.url is not None:
        return BridgeAddress(bridge_url(choice.url), choice.token)
    return _bridge_here(choice.port, choice.token)


def bridge_of_run(run: RunRecord, token: str | None = None) -> BridgeAddress | None:
    """Return the bridge of a run, with the run's own token if none is given; None if it has no bridge."""
    return None if run.bridge_url is None else BridgeAddress(run.bridge_url, token or run.token, run=run)


def _bridge_here(port: int | None, token: str | None) -> BridgeAddress:
    from dimos_streams.runtime.registry import runs

    try:
        living = [run for run in runs() if port in (None, run.port)]
    except UserError:
        if port is None:
            raise
        living = []  # with an address nothing of them is needed, but for a token that was not given
    for number, run in enumerate(living):
        if (address := bridge_of_run(run, token)) is not None:
            for newer in living[:number]:
                if not _are_parts_of_one(newer, run):
                    note(f"run {newer.run_id} is newer and has no bridge: {run.run_id} is asked")
            newest_of([run, *(each for each in living if each.bridge_url not in (None, run.bridge_url))])
            return address
    if port is not None:
        return BridgeAddress(f"http://127.0.0.1:{port}", token)
    if living:
        raise _bridgeless(living[0])
    if unreadable := _unreadable():
        raise UserError(unreadable)
    usual = BridgeAddress(f"http://127.0.0.1:{BRIDGE_PORT}", token, is_guess=True)
    note(f"no run of yours lives: whatever bridge answers at {usual.url} is asked")
    return usual


def _are_parts_of_one(run: RunRecord, other: RunRecord) -> bool:
    """Return whether two runs are parts of one blueprint, so that the bridge of one is that of the other."""
    return bool(run.bridge_on) and (run.blueprint, run.bridge_on) == (other.blueprint, other.bridge_on)


def _bridgeless(run: RunRecord) -> UserError:
    text = f"run {run.run_id} has no bridge that could be asked"
    if run.bridge_on:
        text += (
            f": it is on machine {run.bridge_on!r}; start its part there, or give --url, or start this part with"
            " --bridge URL"
        )
    return UserError(text)


@asynccontextmanager
async def open_gateway(address: BridgeAddress, *, ends_with_run: bool = False) -> AsyncIterator[HttpGateway]:
    """Open a gateway to a bridge. Readers of events wait for it to come back, but for that of a run of this machine
    that has ended if it ``ends_with_run``: then they get a ``NoRunError``.

    Nothing is asked beforehand, so that a command costs no more than its own requests. When one of them fails, a
    further one shows whether there is no bridge; then ``BridgeUnreachableError`` is raised instead.
    """
    from dimos_streams.cli.bridge_client.answers import HEALTH

    gateway = address.gateway(partial(_gone, address.run if ends_with_run else None))
    try:
        yield gateway
    except SkillError as error:
        if type(error) in (SkillError, SkillUnavailableError, NoAnswerError):
            await address.get("/healthz", HEALTH)
        raise
    finally:
        gateway.close()


def at_bridge(address: BridgeAddress, work: Callable[[HttpGateway], Awaitable[T]]) -> T:
    """Return the result of work with a gateway to a bridge, which ends with its run. Raises as ``open_gateway``
    does."""
    from dimos_streams.cli.system.async_runner import run_async

    async def main() -> T:
        async with open_gateway(address, ends_with_run=True) as gateway:
            return await work(gateway)

    return run_async(main())


def _gone(record: RunRecord | None) -> NoRunError | None:
    """Return the error of a run that has ended; None if it lives, or nobody knows the run."""
    from dimos_streams.cli.bridge_client.ended import end_of, ended_in

    run = None if record is None else ended_in(record.run_dir)
    return None if run is None else NoRunError(f"run {run.run_id} {end_of(run)}")


def find_bus_url(given: str | None) -> str:
    """Return the bus that an option names, else the newest living run's, else the environment's, else LCM's usual
    one."""
    from dimos_streams.bus import bus_url
    from dimos_streams.bus.url import leaves_process

    if given is None:
        from dimos_streams.runtime.registry import runs

        given = next((run.bus_url for run in runs() if leaves_process(run.bus_url)), None)
    return bus_url(given)


def living_runs(selector: str | None = None) -> list[RunRecord]:
    """Return the living runs with an id, blueprint, process id or machine, or all, newest first. Raises
    ``NoRunError`` if none lives, and ``UserError`` if none that lives is called so; they say how the one has ended
    that was called so, if it is kept. Raises ``DimosStreamsError`` if only runs live whose records can't be read."""
    from dimos_streams.runtime.registry import runs

    if meant := runs_called(selector, living := runs()):
        return meant
    ended = "" if selector is None else _ended_called(selector)
    unreadable = _unreadable()
    if not living and unreadable:
        raise DimosStreamsError(unreadable)
    if not living:
        raise NoRunError(f"no run lives{ended or _last_ended()}")
    known = ", ".join(run.run_id for run in living)
    raise UserError(
        f"no living run is called {selector!r} (living: {known}){ended}{unreadable and f'; {unreadable}'}"
    )


def _unreadable() -> str:
    """Return what is to be said of living runs whose records can't be read; empty if there are none."""
    from dimos_streams.runtime.unreadable_runs import unreadable_runs

    return "; ".join(map(str, unreadable_runs()))


def find_run(selector: str | None, *, alone: bool = False) -> RunRecord:
    """Return the living run of a name, or without one any; of several the newest, which is said. A name that several
    have is refused if the run is to be ``alone``. Raises as ``living_runs`` does."""
    meant = living_runs(selector)
    if alone and selector is not None:
        refuse_several(meant, selector)
    return newest_of(meant, selector)


def _ended_called(selector: str) -> str:
    from dimos_streams.cli.bridge_client.ended import ended_called

    return ended_called(selector)


def _last_ended() -> str:
    from dimos_streams.cli.bridge_client.ended import last_ended

    return last_ended()
