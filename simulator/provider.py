"""The honest provider: what it holds, and what it truly answers.

* One token serves one body: the same again is the same job (`replayed: true`), another body is a mismatch, and while the
  first is being worked on the answer is `in_flight`. Only `/v1/reports` knows tokens.
* `/v1/plain/reports` makes a job each time it is asked; `/v1/named/reports/NAME` makes one job per name; `/v1/unnamed/reports`
  takes the work and tells no id. All but the named one can carry a reference, by which the job is found again.
* `/v1/uploads` takes anything, `DELETE /v1/uploads/ID` takes it away again: what may stand ahead of a job.
* Nothing here knows of lies; they use `forget`, `duplicate`, `alias` and `store_answer` to make the world worse.
"""

import hashlib
import secrets
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from simulator import asking
from simulator.answer import Answer, Call, Json, refusal, told
from simulator.asking import Ask, Pace, Unfit
from simulator.jobs import Job, stamp
from simulator.portions import portion
from simulator.rows import CONTENT_TYPES
from simulator.uploads import Uploads

HELD_WHOLE = 1024 * 1024
USUAL_PACE = Pace(None, 3.0)
TOLD_INLINE = 64 * 1024
REPLAYED = ("idempotent-replayed", "true")


@dataclass(frozen=True, slots=True)
class Settings:
    """How the provider behaves when nothing else is asked. `bearer` is demanded of every call if it is set."""

    pace: Pace = USUAL_PACE
    cancel_polls: int = 1
    cancel_seconds: float = 1.0
    retry_after: str | None = None
    bearer: str | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """What a token was used for. `stored` is an answer that is given again instead of the job."""

    body_digest: str
    job: str | None
    stored: Answer | None = None


@dataclass(slots=True)
class Provider:
    """Jobs, tokens and references. `touched` names what changed since it was last saved."""

    settings: Settings = Settings()
    clock: Callable[[], float] = time.time
    jobs: dict[str, Job] = field(default_factory=dict[str, Job])
    tokens: dict[str, Token] = field(default_factory=dict[str, Token])
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    references: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    uploads: Uploads = field(default_factory=Uploads)
    touched: set[str] = field(default_factory=set[str])
    touched_tokens: set[str] = field(default_factory=set[str])

    def answer(self, call: Call) -> Answer:
        """The honest answer."""
        bearer = self.settings.bearer
        if bearer is not None and not secrets.compare_digest(call.headers.get("authorization", "").encode(), f"Bearer {bearer}".encode()):
            return refusal(401, "unauthorized", "the credential is missing or wrong", ("www-authenticate", "Bearer"))
        try:
            match call.kind:
                case "create":
                    return self._create(call)
                case "read":
                    return self._count(call)
                case "observe":
                    return self._observe(call)
                case "cancel":
                    return self._cancel(call)
                case "collect":
                    return self._collect(call)
                case "list":
                    return self._reference(call) if call.part == "reference" else self._list(call)
                case "upload":
                    return self.uploads.put(call)
                case "remove":
                    return self.uploads.take_away(call)
                case "unknown":
                    return refusal(404, "no_such_address", "there is nothing here")
        except Unfit as unfit:
            return unfit.answer

    def find(self, name: str | None) -> Job | None:
        """The job of that id, or of an id that a lie gave it."""
        return None if name is None else self.jobs.get(self.aliases.get(name, name))

    def accepted(self, job: Job, call: Call, *, replayed: bool = False) -> Answer:
        """The answer to a create that was taken."""
        if call.endpoint == "unnamed":
            return Answer(204)
        now = self.clock()
        view = job.view(call.base, now)
        headers: list[tuple[str, str]] = [("location", str(view["status_url"]))]
        if replayed:
            headers.append(REPLAYED)
        if self.settings.retry_after is not None:
            headers.append(("retry-after", self.settings.retry_after))
        view["replayed"] = replayed
        if not job.sync:
            return told(202, view, *headers)
        if job.ended == "succeeded" and job.report.summary().size <= TOLD_INLINE:
            view["result"] = b"".join(job.report.pieces()).decode()
        return told(200, view, *headers)

    def duplicate(self, job: Job) -> Job:
        """A second job for the same question."""
        return self._keep(replace(job, id=_new_id(), aliases=[]))

    def alias(self, job: Job) -> str:
        """A further id for the same job."""
        name = _new_id()
        job.aliases.append(name)
        self.aliases[name] = job.id
        self.touched.add(job.id)
        return name

    def forget(self, token: str) -> None:
        """The token was never seen."""
        if self.tokens.pop(token, None) is not None:
            self.touched_tokens.add(token)

    def store_answer(self, call: Call, answer: Answer) -> None:
        """From now on this is what the token is answered with."""
        if call.token is not None:
            self._note_token(call.token, Token(digest(call.body), call.job, answer))

    def _create(self, call: Call) -> Answer:
        token = call.token if call.endpoint == "reports" else None
        if token is not None:
            if call.busy:
                return refusal(409, "in_flight", "a request with this token is being worked on", ("retry-after", "1"))
            if (known := self.tokens.get(token)) is not None:
                return self._replay(known, call)
        if call.endpoint == "named" and (existing := self.find(call.name)) is not None:
            return self._existing(existing, call)
        job = self._make(call, asking.read(asking.parse(call.body), self.settings.pace), token)
        call.job = job.id
        if token is not None:
            self._note_token(token, Token(job.body_digest, job.id))
        answer = self.accepted(job, call)
        return replace(answer, status=201) if call.endpoint == "named" and answer.status == 202 else answer

    def _replay(self, known: Token, call: Call) -> Answer:
        if known.body_digest != digest(call.body):
            return refusal(422, "token_mismatch", "this token was used with another body")
        if known.stored is not None:
            return replace(known.stored, headers=(*known.stored.headers, REPLAYED))
        job = self.find(known.job)
        assert job is not None, "a token names a job that is kept for ever"
        call.job = job.id
        return self.accepted(job, call, replayed=True)

    def _existing(self, job: Job, call: Call) -> Answer:
        call.job = job.id
        if job.body_digest != digest(call.body):
            return refusal(409, "name_taken", "this name was used with another body")
        return told(200, {**job.view(call.base, self.clock()), "existed": True})

    def _make(self, call: Call, ask: Ask, token: str | None) -> Job:
        now, settings = self.clock(), self.settings
        job = Job(
            id=call.name or _new_id(),
            endpoint=call.endpoint,
            report=ask.report,
            body_digest=digest(call.body),
            created_at=now,
            polls=ask.pace.polls,
            seconds=ask.pace.seconds,
            fails=ask.fail,
            token=token,
            reference=call.reference,
            sync=ask.sync,
            cancel_polls=settings.cancel_polls,
            cancel_seconds=settings.cancel_seconds,
        )
        if ask.sync:
            job.end("failed" if ask.fail else "succeeded", now)
        return self._keep(job)

    def _keep(self, job: Job) -> Job:
        self.jobs[job.id] = job
        if job.reference is not None:
            self.references.setdefault(job.reference, []).append(job.id)
        self.touched.add(job.id)
        return job

    def _note_token(self, name: str, token: Token) -> None:
        self.tokens[name] = token
        self.touched_tokens.add(name)

    def _count(self, call: Call) -> Answer:
        fields = asking.parse(call.body)
        account, (start, end) = asking.account(fields), asking.span(fields)
        count = zlib.crc32(f"{account}|{start}|{end}".encode()) % 10_000
        return told(200, {"account": account, "count": count, "as_of": stamp(self.clock())})

    def _observe(self, call: Call) -> Answer:
        if (job := self.find(call.job)) is None:
            return _unknown_job()
        now = self.clock()
        job.ends_shown += job.read(now) in ("succeeded", "failed", "cancelled")
        self.touched.add(job.id)
        return told(200, {**job.view(call.base, now), "job_id": call.job})

    def _cancel(self, call: Call) -> Answer:
        if (job := self.find(call.job)) is None:
            return _unknown_job()
        now = self.clock()
        self.touched.add(job.id)
        if job.settle(now) in ("succeeded", "failed", "cancelled"):
            return refusal(409, "already_ended", f"the job has {job.ended}")
        job.ask_cancel(now)
        return told(202, {"job_id": call.job, "state": "cancelling"})

    def _collect(self, call: Call) -> Answer:
        if (job := self.find(call.job)) is None:
            return _unknown_job()
        self.touched.add(job.id)
        match job.settle(self.clock()):
            case "succeeded":
                job.downloads += 1
                return result(job) if call.part == "result" else portion(job, call)
            case "failed" | "cancelled":
                return refusal(409, "no_result", f"the job has {job.ended} and left no result")
            case _:
                return refusal(409, "not_ready", "the report is being rendered")

    def _list(self, call: Call) -> Answer:
        query = call.query
        wanted = query.get("reference")
        try:
            first, limit = int(query.get("cursor", "0")), min(200, max(1, int(query.get("limit", "50"))))
            lower, upper = (_instant(query[name]) if name in query else None for name in ("created_from", "created_to"))
        except ValueError:
            return refusal(400, "bad_query", "cursor and limit are numbers, created_from and created_to are RFC 3339 times")
        found = [job for job in self.jobs.values() if wanted in (None, job.reference) and _within(job.created_at, lower, upper)]
        page = found[max(0, first) : first + limit]
        now = self.clock()
        following = str(first + limit) if first + limit < len(found) else None
        return told(200, {"items": [job.view(call.base, now) for job in page], "next": following})

    def _reference(self, call: Call) -> Answer:
        held = self.references.get(call.name, [])
        if not held:
            return refusal(404, "no_such_reference", "no job carries this reference")
        return told(200, {**self.jobs[held[0]].view(call.base, self.clock()), "jobs": list[Json](held)})


def result(job: Job) -> Answer:
    """The finished report: whole if it is small, in pieces otherwise."""
    report, size = job.report, job.report.summary().size
    headers = (("content-type", CONTENT_TYPES[report.format]),)
    if size <= HELD_WHOLE:
        return Answer(200, headers, b"".join(report.pieces()))
    return Answer(200, headers, stream=report.pieces, length=size)


def digest(body: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(body).hexdigest()


def _instant(text: str) -> float:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("a time without an offset")
    return at.timestamp()


def _within(at: float, lower: float | None, upper: float | None) -> bool:
    return (lower is None or lower <= at) and (upper is None or at <= upper)


def _unknown_job() -> Answer:
    return refusal(404, "no_such_job", "no job has this id")


def _new_id() -> str:
    return f"job_{secrets.token_hex(8)}"
