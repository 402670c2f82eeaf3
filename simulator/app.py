"""The door: one ASGI application in front of the provider, its books and its script.

For each call: read and route it, choose its lies, enter it into the books, do the work (or the lie), write down what was done, and
send the answer. Between the first and the last the token counts as in flight. Addresses under `/v1` are the provider's; `/books`,
`/script`, `/lies`, `/release` and `/health` are for whoever runs it, take no credential and are entered nowhere.
"""

from typing import cast
from urllib.parse import parse_qsl, unquote

from starlette.types import Receive, Scope, Send

from simulator.answer import Answer, Call, Endpoint, Json, Kind, Part, refusal, told
from simulator.asking import Unfit, parse
from simulator.books import Books
from simulator.lies import LIES
from simulator.script import BadScript, Told
from simulator.wire import Closing, Gate, Wire

MAX_BODY = 1024 * 1024


def make_app(books: Books) -> "App":
    """The simulator as an ASGI application over these books."""
    return App(books)


class App:
    """See the module's docstring."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self.gate = Gate()
        self._in_flight: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        assert scope["type"] == "http", "there is no lifespan and no websocket"
        wire = Wire(scope, receive, send, self.gate)
        body = await _read(receive)
        call = _call(scope, body or b"")
        try:
            if body is None:
                await wire.deliver(refusal(413, "too_large", "a request has at most 1 MiB"))
            elif call.path.startswith("/v1/"):
                await wire.deliver(await self._serve(call))
            else:
                await wire.deliver(self._inside(call))
        except Closing:
            await wire.break_off()

    async def _serve(self, call: Call) -> Answer:
        self._identify(call)
        lies = self.books.script.chosen(call)
        entry = self.books.enter(call, lies)
        call.busy = call.token in self._in_flight
        mine = call.token is not None and not call.busy
        if mine:
            self._in_flight.add(cast("str", call.token))
        try:
            await self._wait(lies, "before")
            answer = self._work(call, lies)
            self.books.close_entry(entry, call, answer)
            await self._wait(lies, "after")
        finally:
            if mine:
                self._in_flight.discard(cast("str", call.token))
        return answer

    def _identify(self, call: Call) -> None:
        """Whose call it is, as far as the caller says, so that rules can match it."""
        if call.kind in ("create", "read"):
            try:
                fields = parse(call.body)
            except Unfit:
                return
            call.account = _text(fields.get("account"))
            call.reference = call.reference or _text(fields.get("reference"))
        elif (job := self.books.provider.find(call.job)) is not None:
            call.account, call.reference = job.report.account, job.reference

    def _work(self, call: Call, lies: list[Told]) -> Answer:
        provider = self.books.provider
        answer: Answer | None = None
        for told_lie in lies:
            if told_lie.lie.instead is not None:
                lied = told_lie.lie.instead(call, told_lie.args, provider)
                answer = answer or lied
        on_job = [(one.lie.on_job, one.args) for one in lies if one.lie.on_job is not None]
        if call.kind != "create":
            for act, args in on_job:
                act(call, args, provider)
        answer = answer or provider.answer(call)
        if call.kind == "create":
            for act, args in on_job:
                act(call, args, provider)
        for told_lie in lies:
            if told_lie.lie.bend is not None:
                answer = told_lie.lie.bend(call, answer, told_lie.args, provider)
        return answer

    async def _wait(self, lies: list[Told], when: str) -> None:
        for told_lie in lies:
            if told_lie.lie.holds and told_lie.args["when"] == when:
                seconds = told_lie.args["seconds"]
                assert isinstance(seconds, (int, float))
                await (self.gate.hold(seconds) if told_lie.word == "hold" else self.gate.pause(seconds))

    def _inside(self, call: Call) -> Answer:
        books = self.books
        match call.method, call.path:
            case "GET", "/health":
                return told(200, {"ok": True, "holding": self.gate.holding})
            case "GET", "/books":
                return told(200, books.to_json(requests=call.query.get("requests") != "0"))
            case "GET", "/lies":
                return told(200, {"lies": vocabulary()})
            case "GET", "/script":
                return told(200, {"rules": books.script.to_json()})
            case "POST", "/script":
                return self._install(call)
            case "DELETE", "/script":
                books.script.clear()
                books.save()
                return told(200, {"rules": []})
            case "POST", "/release":
                return told(200, {"released": self.gate.release()})
            case _:
                return refusal(404, "no_such_address", "there is nothing here")

    def _install(self, call: Call) -> Answer:
        try:
            rule = self.books.script.add(parse(call.body))
        except Unfit as unfit:
            return unfit.answer
        except BadScript as bad:
            return refusal(422, "bad_script", str(bad))
        self.books.save()
        return told(201, rule.to_json())


def vocabulary() -> list[Json]:
    """Every lie with its sentence, the kinds of call it is for, and its arguments with their usual values."""
    return [
        {"word": word, "sentence": lie.sentence, "kinds": list[Json](sorted(lie.kinds)), "args": dict(lie.args)}
        for word, lie in LIES.items()
    ]


async def _read(receive: Receive) -> bytes | None:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return body


def _call(scope: Scope, body: bytes) -> Call:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    raw = cast("bytes", scope.get("raw_path") or scope["path"].encode())
    query = cast("bytes", scope["query_string"])
    segments = [unquote(segment) for segment in raw.decode("ascii", "replace").split("/")[1:]]
    kind, endpoint, name, part = _route(scope["method"], segments)
    return Call(
        kind=kind,
        method=scope["method"],
        path=raw.decode("ascii", "replace"),
        endpoint=endpoint,
        name=name,
        query=dict(parse_qsl(query.decode("ascii", "replace"))) if query else {},
        headers=headers,
        body=body,
        part=part,
        extra=segments[-1] if part == "part" else "",
        token=headers.get("idempotency-key") if kind == "create" and endpoint == "reports" else None,
        reference=name if part == "reference" else headers.get("x-reference"),
        job=name if kind in ("observe", "cancel", "collect") else None,
    )


def _route(method: str, segments: list[str]) -> tuple[Kind, Endpoint, str, Part]:
    match method, segments:
        case "POST", ["v1", "reports"]:
            return "create", "reports", "", ""
        case "POST", ["v1", "plain", "reports"]:
            return "create", "plain", "", ""
        case "POST", ["v1", "unnamed", "reports"]:
            return "create", "unnamed", "", ""
        case "PUT", ["v1", "named", "reports", name] if 0 < len(name) <= 128 and name.isprintable():
            return "create", "named", name, ""
        case "POST", ["v1", "counts"]:
            return "read", "counts", "", ""
        case "POST", ["v1", "uploads"]:
            return "upload", "", "", ""
        case "DELETE", ["v1", "uploads", upload]:
            return "remove", "", upload, ""
        case "GET", ["v1", "jobs", job]:
            return "observe", "", job, "job"
        case "DELETE", ["v1", "jobs", job]:
            return "cancel", "", job, "job"
        case "GET", ["v1", "jobs", job, "result"]:
            return "collect", "", job, "result"
        case "GET", ["v1", "jobs", job, "pages" | "rows" | "parts" as part]:
            return "collect", "", job, part
        case "GET", ["v1", "jobs", job, "parts", _]:
            return "collect", "", job, "part"
        case "GET", ["v1", "reports"]:
            return "list", "", "", ""
        case "GET", ["v1", "references", mark]:
            return "list", "", mark, "reference"
        case _:
            return "unknown", "", "", ""


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
