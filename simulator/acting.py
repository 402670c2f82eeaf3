"""Lies that change what the provider does: they answer in its place, or do something to a job behind the caller's back.

A function returns the answer that is given instead of the honest one, or None to let the provider go on.
"""

import gzip
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache

from simulator.answer import Answer, Call, Json, dump, refusal, told
from simulator.jobs import End
from simulator.provider import REPLAYED, Provider, digest

Args = dict[str, Json]
Instead = Callable[[Call, Args, Provider], Answer | None]
HOUR, CENTURY = 3600.0, 86_400.0 * 365 * 30

RETRY_AFTER: dict[str, Callable[[float, float], str | None]] = {
    "none": lambda _now, _seconds: None,
    "seconds": lambda _now, seconds: str(int(seconds)),
    "fraction": lambda _now, seconds: f"{seconds + 0.25:.2f}",
    "http_date": lambda now, seconds: formatdate(now + seconds, usegmt=True),
    "zero": lambda _now, _seconds: "0",
    "negative": lambda _now, seconds: f"-{int(seconds) or 1}",
    "hour": lambda _now, _seconds: str(int(HOUR)),
    "past_date": lambda now, _seconds: formatdate(now - CENTURY, usegmt=True),
    "garbage": lambda _now, _seconds: "in a while; promise=1",
}
"""The forms that Retry-After is seen in, each made from the time and a number of seconds."""


def busy(status: int, error: str) -> Instead:
    """An answer that asks to come back later, with Retry-After in the form that the script names."""

    def act(_call: Call, args: Args, provider: Provider) -> Answer:
        text = RETRY_AFTER[str(args["retry_after"])](provider.clock(), _seconds(args))
        return refusal(status, error, "come back later", *([] if text is None else [("retry-after", text)]))

    return act


def said(status: int, error: str, message: str) -> Instead:
    """A plain refusal."""

    def act(_call: Call, _args: Args, _provider: Provider) -> Answer:
        return refusal(status, error, message)

    return act


def in_flight(_call: Call, _args: Args, _provider: Provider) -> Answer:
    """As if an earlier sending were still being worked on."""
    return refusal(409, "in_flight", "a request with this token is being worked on")


def error_stored(call: Call, args: Args, provider: Provider) -> Answer | None:
    """A 500 that the token is answered with for ever; the job exists or not, as the script says."""
    if call.token is None:
        return refusal(500, "internal", "something broke")
    if call.token in provider.tokens:
        return None
    if args["created"] is True:
        provider.answer(call)
    stored = refusal(500, "internal", "something broke")
    provider.store_answer(call, stored)
    return stored


def forget_token(call: Call, _args: Args, provider: Provider) -> None:
    """The token's memory is lost before the request is looked at."""
    if call.token is not None:
        provider.forget(call.token)


def new_id(call: Call, _args: Args, provider: Provider) -> Answer | None:
    """A known token is answered with another id for its job."""
    known = provider.tokens.get(call.token or "")
    job = provider.find(known.job) if known is not None else None
    if known is None or job is None or known.body_digest != digest(call.body):
        return None
    name = provider.alias(job)
    call.job = job.id
    fields = {**job.view(call.base, provider.clock()), "job_id": name, "status_url": f"{call.base}/v1/jobs/{name}", "replayed": True}
    return told(202, fields, ("location", f"{call.base}/v1/jobs/{name}"), REPLAYED)


def never_visible(call: Call, _args: Args, _provider: Provider) -> Answer:
    """The job is not there, whoever asks."""
    if call.kind == "list" and call.part != "reference":
        return told(200, {"items": [], "next": None})
    return refusal(404, "no_such_job", "no job has this id")


def gone(call: Call, _args: Args, provider: Provider) -> Answer | None:
    """A job that was seen is not known any more."""
    job = provider.find(call.job)
    return None if job is not None and job.reads == 0 else refusal(404, "no_such_job", "no job has this id")


def expired(_call: Call, args: Args, _provider: Provider) -> Answer:
    """The result is gone, in the status that the script names."""
    return refusal(int(_number(args["status"])), "expired", "the result has expired")


def one_time(call: Call, _args: Args, provider: Provider) -> Answer | None:
    """The result can be fetched once."""
    job = provider.find(call.job)
    return None if job is not None and job.downloads == 0 else refusal(410, "already_fetched", "the result could be fetched once")


def ends(how: End) -> Instead:
    """The job really ends like this, now."""

    def act(call: Call, _args: Args, provider: Provider) -> None:
        if (job := provider.find(call.job)) is not None:
            job.end(how, provider.clock())
            provider.touched.add(job.id)

    return act


def cancel_answered(state: str) -> Instead:
    """A cancel that is taken, in words only."""

    def act(call: Call, _args: Args, provider: Provider) -> Answer | None:
        job = provider.find(call.job)
        return None if job is None else told(202, {"job_id": call.job, "state": state or job.settle(provider.clock())})

    return act


def success_racing_cancel(call: Call, _args: Args, provider: Provider) -> Answer | None:
    """The work is done in the moment of the cancel, which is acknowledged all the same."""
    ends("succeeded")(call, _args, provider)
    return cancel_answered("cancelling")(call, _args, provider)


def success_after_cancel(call: Call, _args: Args, provider: Provider) -> Answer | None:
    """The cancel takes its time and then the job has succeeded."""
    job = provider.find(call.job)
    now = provider.clock()
    if job is None or job.settle(now) in ("succeeded", "failed", "cancelled"):
        return None
    job.ask_cancel(now, "succeeded")
    provider.touched.add(job.id)
    return told(202, {"job_id": call.job, "state": "cancelling"})


def redirect(call: Call, args: Args, _provider: Provider) -> Answer:
    """Sends the caller, with what it carries, to another host."""
    return Answer(int(_number(args["status"])), (("location", f"{args['to']}{call.path}"),), b"")


def gzip_bomb(call: Call, args: Args, provider: Provider) -> Answer:
    """A small answer that unpacks to a huge one. What was asked for is still done."""
    provider.answer(call)
    return Answer(200, (("content-type", "application/json"), ("content-encoding", "gzip")), _bomb(int(_number(args["mebibytes"]))))


@lru_cache(maxsize=2)
def _bomb(mebibytes: int) -> bytes:
    return gzip.compress(dump({"state": "running", "pad": "0" * (mebibytes * 1024 * 1024)}), compresslevel=9)


def _seconds(args: Args) -> float:
    return _number(args["seconds"])


def _number(value: Json) -> float:
    assert isinstance(value, (int, float)), "the script was checked against the vocabulary"
    return float(value)
