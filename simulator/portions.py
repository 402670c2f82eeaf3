"""A finished report in portions: pages of bytes, pages of a list, or parts that are fetched one by one.

* `pages` gives rows as they stand in the report, CSV with its header each time, and says in headers how many rows and what leads on.
  `rows` gives them as a list in JSON with the same said beside it. `parts` lists the parts, `part` gives one.
* A cursor is the number of the first row of the page, so the same cursor is the same page.
"""

import hashlib
import json
from typing import cast

from simulator.answer import Answer, Call, Json, refusal, told
from simulator.jobs import Job
from simulator.rows import CONTENT_TYPES

USUAL_SIZE = 2


def portion(job: Job, call: Call) -> Answer:
    """What of the report is asked for."""
    try:
        size = max(1, int(call.query.get("size", str(USUAL_SIZE))))
        index = int(call.query["index"]) * size if "index" in call.query else int(call.query.get("cursor", "0"))
    except ValueError:
        return refusal(400, "bad_query", "cursor, index and size are numbers")
    match call.part:
        case "pages":
            return _page(job, index, size)
        case "rows":
            return _rows(job, call, index, size)
        case "parts":
            return told(200, {"parts": [_part_view(job, call, number, size) for number in range(_count(job, size))]})
        case _:
            return _part(job, call, size)


def _head_and_rows(job: Job) -> tuple[bytes, list[bytes]]:
    lines = b"".join(job.report.pieces()).splitlines(keepends=True)
    return (lines[0], lines[1:]) if job.report.format == "csv" else (b"", lines)


def _count(job: Job, size: int) -> int:
    return -(-job.report.rows // size)


def _slice(job: Job, first: int, size: int) -> tuple[bytes, int]:
    head, rows = _head_and_rows(job)
    taken = rows[max(0, first) : first + size]
    return head + b"".join(taken), len(taken)


def _page(job: Job, first: int, size: int) -> Answer:
    body, count = _slice(job, first, size)
    headers = [("content-type", CONTENT_TYPES[job.report.format]), ("x-rows", str(count))]
    if first + size < job.report.rows:
        headers.append(("x-next", str(first + size)))
    return Answer(200, tuple(headers), body)


def _rows(job: Job, call: Call, first: int, size: int) -> Answer:
    body, count = _slice(job, first, size)
    lines = body.decode().splitlines()[1 if job.report.format == "csv" else 0 :]
    items: list[Json] = [cast("Json", json.loads(line)) if job.report.format != "csv" else line for line in lines]
    more = first + size < job.report.rows
    following = f"{call.base}/v1/jobs/{job.id}/rows?size={size}&cursor={first + size}"
    return told(
        200,
        {
            "items": items,
            "rows": count,
            "pages": _count(job, size),
            "more": more,
            "next": str(first + size) if more else None,
            "next_url": following if more else None,
        },
    )


def _part_view(job: Job, call: Call, number: int, size: int) -> dict[str, Json]:
    body, rows = _slice(job, number * size, size)
    return {
        "name": f"part-{number + 1}",
        "url": f"{call.base}/v1/jobs/{job.id}/parts/{number}?size={size}",
        "size": len(body),
        "checksum": _digest(body),
        "rows": rows,
    }


def _part(job: Job, call: Call, size: int) -> Answer:
    if not call.extra.isdigit() or int(call.extra) >= _count(job, size):
        return refusal(404, "no_such_part", "the report has no such part")
    body, _ = _slice(job, int(call.extra) * size, size)
    return Answer(200, (("content-type", CONTENT_TYPES[job.report.format]), ("x-checksum", _digest(body))), body)


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
