"""A made-up provider that prints labels: the body of its answer has an order's number, and only `Location` the id that addresses need."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.adapters.loopback import answer, serve

CONTRACT = """\
contract: made.up.labels.print
version: 1
provider: {name: made-up, api_version: v1, sources: [https://labels.example/docs], verified_on: 2026-11-30}
input: {type: object, required: [shop, labels], properties: {shop: {type: string}, labels: {type: integer, minimum: 1}}}
effect: {class: external_write, resource: "shop/${input.shop}", summary: "Print ${input.labels} labels"}
http: {base: "BASE", auth: none}
deadlines: {create: 1m, result: 10m, cancel: 5s}
errors: {message: body.text}
create:
  request: {method: POST, path: /orders, headers: {Request-Key: "${token}"}, json: "${input}"}
  token: {window: 48h}
  answers:
    - {when: {status: 202}, is: accepted}
    - {when: {status: 409}, is: mismatch}
  job: {id: last_segment(headers.location)}
observe:
  request: {method: GET, path: "/orders/${job.id}"}
  poll: {first: 10ms, floor: 10ms, cap: 50ms}
  states:
    - {when: {status: 404}, is: gone}
    - {when: {body.phase: PRINTING}, is: running}
    - {when: {body.phase: PRINTED}, is: succeeded}
    - {when: {body.phase: JAMMED}, is: failed}
    - {when: {body.phase: WITHDRAWN}, is: cancelled}
cancel:
  request: {method: POST, path: "/orders/${job.id}/withdraw"}
  answers:
    - {when: {status: 202}, is: acknowledged}
    - {when: {status: 409}, is: already_terminal}
  repeatable: true
collect: none
reconcile: none
"""


@dataclass
class Order:
    """One order: what was asked for, and how often it was read."""

    asked: Any
    reads: int = 0
    withdrawn: bool = False


@dataclass
class Printer:
    """`takes`: readings until an order is printed. `hides`: readings that do not show it yet. `forgets_after`: the reading after which it
    is shown no more. `forgets_withdrawn`: what was withdrawn is not shown. `withdraws_anything`: also what there is not.
    """

    takes: int = 3
    hides: int = 0
    forgets_after: int | None = None
    forgets_withdrawn: bool = False
    withdraws_anything: bool = False
    orders: dict[str, Order] = field(default_factory=dict[str, Order])
    keys: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def going(self) -> list[str]:
        """Orders that are still being printed."""
        return [number for number, order in self.orders.items() if not order.withdrawn and order.reads < self.takes]

    def says(self, method: str, path: str, key: str, body: bytes) -> tuple[str, Any, str]:
        """Status, body and location."""
        match [method, *path.strip("/").split("/")]:
            case ["POST", "orders"]:
                return self._orders(key, json.loads(body))
            case ["GET", "orders", number] if number in self.orders:
                return self._shows(self.orders[number])
            case ["POST", "orders", number, "withdraw"] if self.withdraws_anything or number in self.orders:
                return self._withdraws(self.orders.get(number))
            case _:
                return "404 Not Found", {"text": "no such order"}, ""

    def _orders(self, key: str, asked: Any) -> tuple[str, Any, str]:
        number = self.keys.setdefault(key, f"{len(self.orders) + 1:06d}")
        order = self.orders.setdefault(number, Order(asked))
        if order.asked != asked:
            return "409 Conflict", {"text": "this key made another order"}, ""
        return "202 Accepted", {"order": int(number)}, f"/orders/{number}"

    def _withdraws(self, order: Order | None) -> tuple[str, Any, str]:
        if order is not None:
            if not order.withdrawn and order.reads >= self.takes:
                return "409 Conflict", {"text": "already printed"}, ""
            order.withdrawn = True
        return "202 Accepted", {}, ""

    def _shows(self, order: Order) -> tuple[str, Any, str]:
        order.reads += 1
        forgotten = self.forgets_after is not None and order.reads > self.forgets_after
        if order.reads <= self.hides or forgotten or (order.withdrawn and self.forgets_withdrawn):
            return "404 Not Found", {"text": "no such order"}, ""
        return "200 OK", {"phase": "WITHDRAWN" if order.withdrawn else "PRINTED" if order.reads >= self.takes else "PRINTING"}, ""


@asynccontextmanager
async def printing(printer: Printer) -> AsyncGenerator[str]:
    """Where it listens while the block runs."""

    async def behaviour(head: bytes, writer: asyncio.StreamWriter) -> bool:
        lines = head.decode().split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        key = next((line.partition(":")[2].strip() for line in lines if line.lower().startswith("request-key:")), "")
        status, shown, location = printer.says(method, path, key, server.bodies[-1])
        headers = ["Content-Type: application/json", *([f"Location: {location}"] if location else [])]
        writer.write(answer(json.dumps(shown).encode(), *headers, status=status))
        await writer.drain()
        return True

    async with serve(behaviour) as server:
        yield server.origin
