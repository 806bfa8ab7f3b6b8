"""The address of a bridge, and single requests to it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from dimos_streams.cli.terminal.output import note
from dimos_streams.client.asking_again import UNKNOWN
from dimos_streams.common.json.reading import parse_json
from dimos_streams.errors import CallInDoubtError, DimosStreamsError, NoAnswerError

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

    @property
    def run_lives(self) -> bool:
        """True if it is the bridge of a run of this machine that goes on, and so restarts it."""
        from dimos_streams.runtime.registry import lives

        return self.run is not None and lives(self.run.pid, self.run.pid_started)

    def gateway(self, gone: Callable[[], Exception | None] = lambda: None) -> HttpGateway:
        """Return a gateway to the bridge, with this person's token and certificates. ``gone`` is as for
        ``HttpGateway``. Raises ``UserError`` for certificates that can't be used."""
        from dimos_streams.cli.bridge_client.certificates import own_tls
        from dimos_streams.client.http_gateway import HttpGateway
        from dimos_streams.client.orders import ANSWER_S

        tls = own_tls(self.url)
        return HttpGateway(self.url, token=self.sent_token(), timeout_s=ANSWER_S, tls=tls, gone=gone)

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
            raise BridgeUnreachableError(self._refusal(response))
        except (NoAnswerError, ValueError) as error:
            if body is not None and isinstance(error, NoAnswerError) and error.may_have_arrived:
                raise
            reason = why(error)
            if reason.startswith(UNTRUSTED):
                reason += f"; {CA} names a file of who has signed it"
            raise BridgeUnreachableError(self._unreachable(reason)) from error

    def _refusal(self, response: requests.Response) -> str:
        if response.status_code == 401:
            which = "another token than this one" if self.token else "a token"
            return f"the bridge at {self.url} wants {which}: give it with --token or DIMOS_STREAMS_TOKEN"
        status = f"HTTP {response.status_code} {response.reason}"
        return f"what answers at {self.url} is no bridge, or refuses us: {status}"

    def _unreachable(self, reason: str) -> str:
        from dimos_streams.cli.bridge_client.ended import last_ended

        why = f"no bridge answers at {self.url} ({reason[:1].lower()}{reason[1:]})"
        if self.run is not None and self.run_lives:
            return f"{why}, though run {self.run.run_id} lives: `dimos-streams status` says whether it is restarted"
        return (
            f"{why}: start a run with `dimos-streams run BLUEPRINT`, or name another bridge with --url or"
            f" --port{last_ended() if self.is_guess else ''}"
        )


@functools.cache
def _say_overheard(host: str) -> None:
    note(f"the token goes to {host} unencrypted, and can be read on the way; https:// to a proxy there hides it")


def _type_of(response: requests.Response) -> str:
    return str(response.headers.get("Content-Type", ""))
