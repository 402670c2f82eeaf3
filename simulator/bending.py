"""Lies that change what an answer says, and how it travels. The job and the honest state behind it stay as they are.

Each takes the answer as it would have been sent. A lie about a status, a create or a result has nothing to bend in an
answer of another kind, and leaves it alone.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal

from simulator.answer import AT_ONCE, JSON, Answer, Call, Json, dump
from simulator.jobs import Job
from simulator.provider import Provider

Args = dict[str, Json]
Bend = Callable[[Call, Answer, Args, Provider], Answer]
ADDRESSES = ("status_url", "result_url")


def accept_twice(call: Call, answer: Answer, _args: Args, provider: Provider) -> Answer:
    """One request made two jobs; the answer tells of one."""
    job = provider.find(call.job)
    if job is not None and answer.status in (200, 201, 202, 204):
        provider.duplicate(job)
    return answer


def state(word: str) -> Bend:
    """A status answer with another state word; an empty one is taken from the script."""

    def bend(_call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
        return _edited(answer, {"state": word or args["state"], **_NOTHING_DONE})

    return bend


def stale_status(call: Call, answer: Answer, _args: Args, provider: Provider) -> Answer:
    """The status as it was in the beginning."""
    if (job := provider.find(call.job)) is None:
        return answer
    begun = job.view(call.base, job.created_at)["created_at"]
    return _edited(
        answer, {"state": "queued", "progress": {"completed": 0, "total": job.report.rows}, "updated_at": begun, **_NOTHING_DONE}
    )


def state_backwards(call: Call, answer: Answer, _args: Args, provider: Provider) -> Answer:
    """A running job is queued again and has done less."""
    fields, job = answer.fields(), provider.find(call.job)
    if fields is None or job is None or fields.get("state") != "running":
        return answer
    return _edited(answer, {"state": "queued", "progress": {"completed": 0, "total": job.report.rows}})


def terminal_then_running(call: Call, answer: Answer, _args: Args, provider: Provider) -> Answer:
    """Once the end was shown, the job runs again."""
    job = provider.find(call.job)
    if job is None or job.ends_shown < 2:  # this reading has been counted
        return answer
    return _edited(answer, {"state": "running", **_NOTHING_DONE})


def list_lag(call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
    """The newest jobs are not in the list yet, nor found by their reference."""
    fields, newest = answer.fields(), args["newest"]
    if fields is None or not isinstance(newest, int):
        return answer
    if call.part == "reference":
        return replace(answer, status=404, body=dump({"error": "no_such_reference", "message": "no job carries this reference"}))
    items = fields.get("items")
    return _edited(answer, {"items": items[: max(0, len(items) - newest)]}) if isinstance(items, list) else answer


def elsewhere(call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
    """Every address that the answer names points elsewhere: to the same path of another host, or to one whole address."""
    to = str(args["to"])
    fields = answer.fields() or {}
    moved: dict[str, Json] = {name: _moved(str(fields[name]), call.base, to) for name in ADDRESSES if fields.get(name)}
    headers = tuple((name, _moved(value, call.base, to) if name == "location" else value) for name, value in answer.headers)
    return replace(_edited(answer, moved), headers=headers)


def _moved(address: str, base: str, to: str) -> str:
    return to if to.rstrip("/").count("/") > 2 else to.rstrip("/") + address.removeprefix(base)


def planted(value: Callable[[Args], Json]) -> Bend:
    """A top-level field of the answer, named by the script, holds something hard to keep."""

    def bend(_call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
        return _edited(answer, {str(args["field"]): value(args)})

    return bend


def huge_integer(_call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
    """Numbers that no double and no canonical JSON can hold: an integer of 2^60, and 1e400."""
    fields = answer.fields()
    if fields is None:
        return answer
    fields |= {str(args["field"]): 2**60, "progress": {"completed": 2**60, "total": 2**60 + 1}, "infinite": "@"}
    return replace(answer, body=dump(fields).replace(b'"infinite":"@"', b'"infinite":1e400'))


def deep_json(_call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
    """JSON nested deeper than any parser should follow."""
    depth = args["depth"]
    assert isinstance(depth, int)
    return _with_raw_field(answer, b'"deep":' + b"[" * depth + b"]" * depth)


def invalid_utf8(_call: Call, answer: Answer, _args: Args, _provider: Provider) -> Answer:
    """Bytes inside a JSON text that are not UTF-8; any other body begins with them."""
    if answer.fields() is None:
        return replace(answer, body=b"\xff\xfe" + answer.whole(), stream=None, length=None)
    return _with_raw_field(answer, b'"note":"\xff\xfe\xc0"')


def huge_header(_call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
    """A header line larger than clients take."""
    size = args["bytes"]
    assert isinstance(size, int)
    return replace(answer, headers=(*answer.headers, ("x-padding", "p" * size)))


def wrong_content_type(_call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
    """The same body under another name."""
    kept = [pair for pair in answer.headers if pair[0] != "content-type"]
    return replace(answer, headers=(*kept, ("content-type", str(args["type"]))))


def result_bytes(edit: Callable[[Job, bytes], bytes]) -> Bend:
    """A result with other bytes, sent as if they were the right ones."""

    def bend(call: Call, answer: Answer, _args: Args, provider: Provider) -> Answer:
        job = provider.find(call.job)
        if job is None or answer.status != 200 or call.kind != "collect":
            return answer
        return replace(answer, body=edit(job, answer.whole()), stream=None, length=None)

    return bend


def flipped(_job: Job, body: bytes) -> bytes:
    """The same size; one digit near the end is another."""
    at = max((body.rfind(str(digit).encode()) for digit in range(10)), default=-1)
    return body if at < 0 else body[:at] + (b"0" if body[at : at + 1] != b"0" else b"1") + body[at + 1 :]


def halved(_job: Job, body: bytes) -> bytes:
    """The first half, ending in the middle of a row."""
    return body[: len(body) // 2].rstrip(b"\n,]")


def shortened(job: Job, _body: bytes) -> bytes:
    """A well-formed report with fewer rows."""
    return b"".join(replace(job.report, rows=job.report.rows // 2).pieces())


def of_another(job: Job, _body: bytes) -> bytes:
    """The report of another account."""
    return b"".join(replace(job.report, account=job.report.account[::-1] + "-other").pieces())


def page_leads_to(_call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
    """The page leads to the one that the script names."""
    return _leading(answer, str(args["cursor"]))


def page_never_last(call: Call, answer: Answer, _args: Args, _provider: Provider) -> Answer:
    """However far it is asked, there is more."""
    return _leading(answer, str(int(call.query.get("cursor", "0")) + 2))


def _leading(answer: Answer, cursor: str) -> Answer:
    if answer.status != 200:
        return answer
    headers = (*(pair for pair in answer.headers if pair[0] != "x-next"), ("x-next", cursor))
    return replace(_edited(answer, {"next": cursor, "more": True}), headers=headers)


def page_rows_wrong(_call: Call, answer: Answer, _args: Args, _provider: Provider) -> Answer:
    """One row more than there is."""
    fields = answer.fields() or {}
    rows = fields.get("rows")
    headers = tuple((name, str(int(value) + 1) if name == "x-rows" else value) for name, value in answer.headers)
    return replace(_edited(answer, {"rows": rows + 1} if isinstance(rows, int) else {}), headers=headers)


def page_elsewhere(_call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
    """The whole address of the next page is another host's."""
    return _edited(answer, {"next_url": args["to"]})


def page_columns_moved(call: Call, answer: Answer, _args: Args, _provider: Provider) -> Answer:
    """The first column is the last, of a page of bytes."""
    if call.part != "pages" or answer.status != 200:
        return answer
    lines = [line.split(",") for line in answer.whole().decode().splitlines()]
    body = "".join(",".join([*line[1:], line[0]]) + "\n" for line in lines).encode()
    return replace(answer, body=body)


def part_names(_call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
    """All parts have one name."""
    parts = (answer.fields() or {}).get("parts")
    named: list[Json] = [{**part, "name": args["name"]} for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return _edited(answer, {"parts": named}) if named else answer


def many_elements(_call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
    """A list without reason."""
    count = args["count"]
    assert isinstance(count, int)
    return _edited(answer, {"elements": list[Json](range(count))})


def new_address(call: Call, answer: Answer, _args: Args, provider: Provider) -> Answer:
    """The address has a key that is another at each reading."""
    fields, job = answer.fields() or {}, provider.find(call.job)
    if job is None or not fields.get("result_url"):
        return answer
    return _edited(answer, {"result_url": f"{fields['result_url']}?key={job.reads}"})


def travels(how: Literal["drop", "cut", "endless", "slow_headers", "slow_body"]) -> Bend:
    """The answer is right and its journey is not."""

    def bend(_call: Call, answer: Answer, args: Args, _provider: Provider) -> Answer:
        seconds, pieces = args.get("seconds"), args.get("pieces")
        pause = float(seconds) if isinstance(seconds, (int, float)) else 0.0
        share, old = args.get("share"), answer.delivery
        match how:
            case "drop":
                new = replace(old, drop=True)
            case "cut":
                new = replace(old, cut=float(share) if isinstance(share, (int, float)) else 0.5)
            case "endless":
                new = replace(old, endless=True)
            case "slow_headers":
                new = replace(old, header_pause=pause)
            case "slow_body":
                new = replace(old, body_pause=pause, pieces=pieces if isinstance(pieces, int) else 1)
        return replace(answer, delivery=new)

    return bend


def dropped() -> Answer:
    """No answer at all."""
    return Answer(0, delivery=replace(AT_ONCE, drop=True))


_NOTHING_DONE: dict[str, Json] = dict.fromkeys(("result_url", "content_type", "checksum", "size", "rows", "error"))


def _edited(answer: Answer, changes: dict[str, Json]) -> Answer:
    fields = answer.fields()
    return answer if fields is None or answer.status >= 300 else replace(answer, body=dump(fields | changes))


def _with_raw_field(answer: Answer, field: bytes) -> Answer:
    if answer.fields() is None:
        return replace(answer, headers=_as_json(answer.headers), body=b"{" + field + b"}", stream=None, length=None)
    comma = b"" if json.loads(answer.body) == {} else b","
    return replace(answer, body=answer.body[:-1] + comma + field + b"}")


def _as_json(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return (*(pair for pair in headers if pair[0] != "content-type"), ("content-type", JSON))
