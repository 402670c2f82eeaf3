"""The honest books: what was really created, asked and downloaded, whatever the answers said.

* Every request is entered before it is answered, with the lies that met it; a status of 0 means that no answer was sent.
* A credential is entered as its SHA-256, never as itself.
* The same questions can be asked here, in process, and as `GET /books`.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

from simulator.answer import Answer, Call, Json, Kind
from simulator.jobs import Job, stamp
from simulator.provider import Provider, Settings, Token, digest
from simulator.script import Rule, Script, Told
from simulator.state import State, What
from simulator.uploads import Upload

KEPT_HEADERS = frozenset(
    {"host", "content-type", "idempotency-key", "x-reference", "x-trace-id", "traceparent"}
    | {"accept", "accept-encoding", "user-agent", "prefer", "cookie"}
)


@dataclass(slots=True)
class Seen:
    """One request as it came, and what was done about it."""

    n: int
    at: str
    kind: Kind
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    authorization: str | None
    body_digest: str
    body_size: int
    account: str | None
    token: str | None
    reference: str | None
    job: str | None
    lies: list[str]
    status: int = 0


@dataclass(slots=True)
class Books:
    """The provider, the script it lies by, and all that was seen of both."""

    provider: Provider = field(default_factory=Provider)
    script: Script = field(default_factory=Script)
    seen: list[Seen] = field(default_factory=list[Seen])
    state: State | None = None

    @classmethod
    def kept_in(cls, path: Path | None, settings: Settings) -> "Books":
        """Books that go on where the file left off; without a file, new ones."""
        books = cls(Provider(settings))
        if path is None:
            return books
        books.state = state = State(path)
        _restore(books.provider, state)
        books.seen = [Seen(**cast("dict[str, str]", value)) for _, value in state.read("seen")]  # pyright: ignore[reportArgumentType]
        for _, value in state.read("script"):
            books.script = Script.from_json(cast("list[Json]", value))
        return books

    def jobs(self, account: str | None = None) -> list[Job]:
        """Every job that was really made, oldest first; of one account if it is named."""
        return [job for job in self.provider.jobs.values() if account in (None, job.report.account)]

    def job(self, name: str) -> Job:
        """The job of this id; an unknown one is a KeyError."""
        return self.provider.jobs[self.provider.aliases.get(name, name)]

    def uploads(self, *, removed: bool | None = None) -> list[Upload]:
        """Every upload, oldest first; only those that are (or are not) taken away, if that is asked."""
        return [one for one in self.provider.uploads.held.values() if removed in (None, one.removed)]

    def jobs_for(self, token: str) -> list[Job]:
        """The jobs that were made under this token. Honest providers make one."""
        return [job for job in self.jobs() if job.token == token]

    def jobs_with(self, reference: str) -> list[Job]:
        """The jobs that carry this reference."""
        return [self.provider.jobs[name] for name in self.provider.references.get(reference, [])]

    def requests(self, kind: Kind | None = None, *, job: str | None = None, token: str | None = None) -> list[Seen]:
        """The requests of this kind, about this job, under this token."""
        return [one for one in self.seen if kind in (None, one.kind) and job in (None, one.job) and token in (None, one.token)]

    def downloads(self, job: str) -> int:
        """How often its result was handed out."""
        return self.job(job).downloads

    def lie(
        self,
        kind: Kind,
        *lies: str | dict[str, Json],
        account: str | None = None,
        job: str | None = None,
        nth: int | None = None,
        times: int | None = None,
        probability: float | None = None,
        seed: int | None = None,
    ) -> Rule:
        """Installs a rule, as `POST /script` does. A lie is its word, or `{"word": ..., "args": {...}}`."""
        match: dict[str, Json] = {"kind": kind, "account": account, "job": job, "nth": nth}
        rule: dict[str, Json] = {"lies": list[Json](lies), "times": times, "probability": probability, "seed": seed}
        said: dict[str, Json] = {name: value for name, value in rule.items() if value is not None}
        said["match"] = {name: value for name, value in match.items() if value is not None}
        return self.script.add(said)

    def enter(self, call: Call, lies: list[Told]) -> Seen:
        """The request, before anything is done about it."""
        headers = call.headers
        credential = headers.get("authorization")
        one = Seen(
            n=len(self.seen) + 1,
            at=stamp(self.provider.clock()),
            kind=call.kind,
            method=call.method,
            path=call.path,
            query=dict(call.query),
            headers={name: headers[name] for name in KEPT_HEADERS & headers.keys()},
            authorization=None if credential is None else hashlib.sha256(credential.encode()).hexdigest(),
            body_digest=digest(call.body),
            body_size=len(call.body),
            account=call.account,
            token=call.token,
            reference=call.reference,
            job=call.job,
            lies=[told.word for told in lies],
        )
        self.seen.append(one)
        return one

    def close_entry(self, one: Seen, call: Call, answer: Answer) -> None:
        """What was done, and the status that is about to be sent; durable from here if the books are kept in a file."""
        one.job, one.status = call.job, 0 if answer.delivery.drop else answer.status
        self.save(one)

    def save(self, *seen: Seen) -> None:
        """Writes what changed."""
        provider = self.provider
        if self.state is not None:
            self.state.write(self._changes(*seen))
        provider.touched.clear()
        provider.touched_tokens.clear()
        provider.uploads.touched.clear()

    def _changes(self, *seen: Seen) -> Iterator[tuple[What, str, Json]]:
        provider = self.provider
        for name in provider.touched:
            yield "job", name, provider.jobs[name].to_json()
        for name in provider.touched_tokens:
            yield "token", name, _token_json(provider.tokens.get(name))
        for name, value in provider.uploads.changes().items():
            yield "upload", name, value
        for one in seen:
            yield "seen", str(one.n), cast("Json", asdict(one))
        if self.script.rules or not seen:
            yield "script", "rules", self.script.to_json()

    def to_json(self, *, requests: bool = True) -> dict[str, Json]:
        """The whole account."""
        jobs = self.jobs()
        tokens: dict[str, Json] = {}
        for job in jobs:
            if job.token is not None:
                cast("list[Json]", tokens.setdefault(job.token, [])).append(job.id)
        return {
            "created": len(jobs),
            "downloads": sum(job.downloads for job in jobs),
            "tokens": tokens,
            "uploads": [cast("Json", asdict(one)) for one in self.uploads()],
            "references": {name: list[Json](held) for name, held in self.provider.references.items()},
            "jobs": [job.to_json() | {"state": job.settle(self.provider.clock())} for job in jobs],
            "requests": [cast("Json", asdict(one)) for one in self.seen] if requests else len(self.seen),
            "script": self.script.to_json(),
        }


def _restore(provider: Provider, state: State) -> None:
    for name, value in state.read("job"):
        job = provider.jobs[name] = Job.from_json(cast("dict[str, Json]", value))
        provider.aliases |= dict.fromkeys(job.aliases, job.id)
        if job.reference is not None:
            provider.references.setdefault(job.reference, []).append(job.id)
    for name, value in state.read("token"):
        held = cast("dict[str, str | None]", value)
        stored = None if held["stored"] is None else Answer(500, (("content-type", "application/json"),), held["stored"].encode())
        provider.tokens[name] = Token(str(held["body_digest"]), held["job"], stored)
    for _, value in state.read("upload"):
        provider.uploads.restore(cast("dict[str, Json]", value))


def _token_json(token: Token | None) -> Json:
    if token is None:
        return None
    return {"body_digest": token.body_digest, "job": token.job, "stored": None if token.stored is None else token.stored.body.decode()}
