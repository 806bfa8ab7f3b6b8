"""Orders as services of Foxglove's protocol: JSON in and out, and refusals that say why."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from dimos_streams.common.invalid import in_a_line, problems_with_values
from dimos_streams.common.json.reading import parse_client_json
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import DimosStreamsError
from dimos_streams.foxglove.door.arrivals import Arrivals, split_number
from dimos_streams.foxglove.orders import ORDERS, Operator, OrderAnswer, OrderRequest, ViewerOrder

if TYPE_CHECKING:
    from foxglove import MessageSchema, Service, ServiceRequest

_WITHIN_S = 70.0
"""More seconds than any order may take."""


class Refused(Exception):
    """An order that was not carried out; the SDK puts the name of this class before its text, which has no secrets:
    what is refused is often named as it was given."""

    def __init__(self, text: str) -> None:
        super().__init__(redacted(text))


class OrderService:
    """One order for the SDK, which calls it in threads of its own; it is carried out on the loop."""

    def __init__(self, order: ViewerOrder, operator: Operator, arrivals: Arrivals) -> None:
        self._order = order
        self._operator = operator
        self._arrivals = arrivals
        self._loop = asyncio.get_running_loop()

    def __call__(self, request: ServiceRequest) -> bytes:
        """The answer's JSON. Raises ``Refused``, whatever the request is."""
        number, payload = split_number(request.payload)
        try:
            asked = self._request(payload)
        except Refused:
            self._loop.call_soon_threadsafe(self._arrivals.note, number)
            raise
        giving = asyncio.run_coroutine_threadsafe(self._carry_out(asked, request.client_id, number), self._loop)
        try:
            return giving.result(_WITHIN_S).model_dump_json().encode()
        except DimosStreamsError as error:
            raise Refused(str(error)) from error
        except (TimeoutError, CancelledError) as error:
            giving.cancel()
            raise Refused(f"{self._order.name} has no answer: the run is ending, or hangs") from error

    async def _carry_out(self, asked: OrderRequest, viewer: int, number: int) -> OrderAnswer:
        has_left = self._arrivals.note(number)  # those behind it arrive once it has its place
        return await self._operator.carry_out(self._order, asked, viewer, has_left)

    def _request(self, payload: bytes) -> OrderRequest:
        try:
            return self._order.request.model_validate(parse_client_json(payload or b"{}"))
        except ValidationError as error:
            valid = ", ".join(self._order.request.model_fields)
            errors = problems_with_values(error, "request")
            raise Refused(f"not a request for {self._order.name}: {in_a_line(errors)} (fields: {valid})") from error
        except ValueError as error:
            raise Refused(f"not a request for {self._order.name}: not JSON: {error}") from error


def services_of(operator: Operator, arrivals: Arrivals) -> list[Service]:
    """Return all orders as services."""
    from foxglove import Service, ServiceSchema

    answer = _schema(OrderAnswer)
    return [
        Service(
            order.name,
            schema=ServiceSchema(order.name.strip("/"), request=_schema(order.request), response=answer),
            handler=OrderService(order, operator, arrivals),
        )
        for order in ORDERS
    ]


def _schema(model: type[BaseModel]) -> MessageSchema:
    from foxglove import MessageSchema, Schema

    described = json.dumps(model.model_json_schema()).encode()
    name = f"dimos_streams.{model.__name__}"
    return MessageSchema(encoding="json", schema=Schema(name=name, encoding="jsonschema", data=described))
