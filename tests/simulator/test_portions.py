"""A report in portions is the report, and the lies about portions are what they say."""

from typing import Any

import pytest

from tests.simulator.conftest import Desk


async def portion(desk: Desk, job: str, path: str, **query: object) -> Any:
    answer = await desk.client.get(f"/v1/jobs/{job}/{path}", params={name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("format", ["csv", "jsonl"])
async def test_pages_are_the_report_and_lead_to_each_other(desk: Desk, format: str) -> None:
    job = await desk.finished(rows=5, format=format)
    whole = (await desk.result(job)).text
    head = whole.splitlines(keepends=True)[0] if format == "csv" else ""
    found, cursor, rows = "", "0", 0
    while cursor:
        answer = await portion(desk, job, "pages", cursor=cursor)
        assert answer.text.startswith(head)
        found += answer.text.removeprefix(head)
        rows += int(answer.headers["x-rows"])
        cursor = answer.headers.get("x-next", "")
    assert (head + found, rows) == (whole, 5)


async def test_rows_are_a_list_by_cursor_by_number_and_by_address(desk: Desk) -> None:
    job = await desk.finished(rows=5, format="jsonl")
    first = (await portion(desk, job, "rows")).json()
    assert (first["rows"], first["pages"], first["more"], first["next"], len(first["items"])) == (2, 3, True, "2", 2)
    second = (await portion(desk, job, "rows", index=1)).json()
    assert second == (await portion(desk, job, "rows", cursor=2)).json() == (await desk.client.get(first["next_url"])).json()
    last = (await portion(desk, job, "rows", cursor=4)).json()
    assert (last["rows"], last["more"], last["next"], last["next_url"]) == (1, False, None, None)


async def test_parts_are_listed_and_are_what_their_checksums_say(desk: Desk) -> None:
    job = await desk.finished(rows=5)
    parts = (await portion(desk, job, "parts", size=3)).json()["parts"]
    assert [(part["name"], part["rows"]) for part in parts] == [("part-1", 3), ("part-2", 2)]
    for part in parts:
        answer = await desk.client.get(part["url"])
        assert (len(answer.content), answer.headers["x-checksum"]) == (part["size"], part["checksum"])
    assert (await desk.client.get(f"/v1/jobs/{job}/parts/9")).status_code == 404
    assert (await desk.client.get(f"/v1/jobs/{job}/rows?cursor=x")).status_code == 400
    assert desk.books.downloads(job) == 5


async def test_portions_are_there_once_the_report_is(desk: Desk) -> None:
    assert (await desk.client.get(f"/v1/jobs/{await desk.job()}/pages")).status_code == 409


async def test_lies_about_portions(desk: Desk) -> None:
    job = await desk.finished(rows=5)
    for word in ("page_leads_back", "page_rows_wrong", "page_columns_moved"):
        desk.books.lie("collect", word)
    answer = await portion(desk, job, "pages", cursor=4)
    assert (answer.headers["x-next"], answer.headers["x-rows"]) == ("2", "2")
    assert answer.text.startswith("account,day,amount,line")
    desk.books.script.clear()
    for lie in ("page_never_last", "page_elsewhere"):
        desk.books.lie("collect", lie)
    said = (await portion(desk, job, "rows", cursor=40)).json()
    assert (said["next"], said["more"], said["next_url"], said["items"]) == ("42", True, "https://elsewhere.example/rows", [])
    desk.books.lie("collect", "part_names")
    assert {part["name"] for part in (await portion(desk, job, "parts")).json()["parts"]} == {"../../etc/passwd"}


async def test_lies_about_addresses_and_lists_in_a_status(desk: Desk) -> None:
    job = await desk.finished()
    desk.books.lie("observe", "new_address", {"word": "many_elements", "args": {"count": 3}})
    first, second = (await desk.read(job)).json(), (await desk.read(job)).json()
    assert first["result_url"] != second["result_url"]
    assert first["elements"] == [0, 1, 2]
