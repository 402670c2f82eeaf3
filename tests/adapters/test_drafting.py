"""`contracts new`: what a draft says is the document's, what it does not say is a hole, and nothing leaves its place."""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract_files import check, load, parse_yaml
from adapters.drafting.draft import Chosen, draft
from adapters.drafting.openapi import OpenApi, as_node
from adapters.drafting.source import MAX_BYTES, read_openapi
from adapters.drafting.text import Said, Section, Tree, Written, hole, written
from domain.errors import BadContract, BadInput

TODAY = date(2026, 11, 30)
DOCUMENTS = Path(__file__).parent.parent / "fixtures" / "openapi"

REPORTS = ("reports.yaml", "acme.reports.create", "createReport", "getReport", "cancelReport", "getContent", "listReports")
RENDERS = ("renders.json", "renders.scene.render", "render", "getRender", "stopRender")
QUERIES = ("queries.yaml", "my_q.query.start", "startQuery", "GET /query/status", None, "queryStatus")
DRAFTS: dict[str, tuple[Any, ...]] = {"reports": REPORTS, "renders": RENDERS, "queries": QUERIES}

WHOSE = {
    "provider": {"sources": ["https://docs.example"], "verified_on": "2026-11-30"},
    "effect": {"class": "external_write", "after_cancel": "nothing"},
}
STATES = [{"when": {"body.phase": "over"}, "is": "succeeded"}, {"when": {"body.phase": "bad"}, "is": "failed"}]
FILLED: dict[str, Mapping[str, Any]] = {
    "reports": {
        "create": {"token": {"window": "24h"}, "answers": {1: {"is": "in_flight"}}},
        "observe": {"states": {4: {"is": "failed"}, 6: {"is": "gone"}}},
        "cancel": {"answers": {1: {"is": "already_terminal"}}},
        "collect": {"from": {"answers": {0: {"is": "not_ready"}}}},
        "reconcile": {
            0: {
                "pages": {"next": "body.next_cursor"},
                "match": {"item.account": "${input.account}"},
                "strength": "heuristic",
            }
        },
    },
    "renders": {
        "files": {"scene": {"media": "model/gltf-binary", "max_bytes": "1GiB"}},
        "create": {"token": {"window": "24h"}, "answers": {1: {"is": "rejected"}}},
        "observe": {"states": [*STATES, {"when": {"body.phase": "stopped"}, "is": "cancelled"}]},
        "cancel": {"request": {"json": {"why": "asked to"}}, "answers": {1: {"is": "already_terminal"}}},
        "collect": "none",
        "reconcile": "none",
    },
    "queries": {
        "create": {"token": {"format": "hex", "window": "1h"}, "answers": {0: {"is": "completed"}}},
        "observe": {"states": [*STATES, {"when": {"status": 202}, "is": "running"}, {"when": {"status": 422}, "is": "failed"}]},
        "collect": {"from": {"inline": "observed.body.rows"}},
        "reconcile": "none",
    },
}


def drafted(document: str, name: str, *operations: str | None) -> str:
    return drafted_of(read_openapi(DOCUMENTS / document), name, *operations).text


def drafted_of(api: OpenApi, name: str, *operations: str | None) -> Written:
    create, status, *others = (None if one is None else api.operation(one) for one in operations)
    assert create is not None
    assert status is not None
    return draft(api, Chosen(name, create, status, *others))


def api_of(document: Any, name: str = "small") -> OpenApi:
    return OpenApi(document, name)


def document_of(text: str) -> Any:
    return parse_yaml(text.encode(), "draft.yaml").document


def filled(node: Any, wanted: Any) -> Any:
    if not isinstance(wanted, Mapping) or not isinstance(node, dict | list):
        return wanted
    made = dict(node) if isinstance(node, dict) else list(node)
    for name, value in wanted.items():
        made[name] = filled(made[name] if isinstance(made, list) else made.get(name), value)
    return made


def findings_of(text: str, name: str, folder: Path) -> list[Any]:
    path = folder / f"{name}.yaml"
    path.write_text(text, "utf-8")
    return check(path, TODAY)


@pytest.mark.parametrize("which", DRAFTS)
def test_a_draft_s_findings_are_exactly_its_holes(which: str, tmp_path: Path):
    made = drafted_of(read_openapi(DOCUMENTS / DRAFTS[which][0]), *DRAFTS[which][1:])
    found = findings_of(made.text, DRAFTS[which][1], tmp_path)
    lines = made.text.splitlines()
    assert {finding.code for finding in found} == {"hole"}
    assert len(found) == made.holes > 0
    assert all('"?"' in lines[finding.line - 1] for finding in found)
    with pytest.raises(BadContract, match="a hole that a person has to fill"):
        load(tmp_path / f"{DRAFTS[which][1]}.yaml")


@pytest.mark.parametrize("which", DRAFTS)
def test_a_draft_whose_holes_are_filled_passes_the_check(which: str, tmp_path: Path):
    whole = filled(filled(document_of(drafted(*DRAFTS[which])), WHOSE), FILLED[which])
    found = findings_of(json.dumps(whole), DRAFTS[which][1], tmp_path)
    assert [(finding.code, finding.key, finding.expected) for finding in found if finding.code != "no-cases"] == []


def test_an_id_in_a_path_is_the_job_s_wherever_it_is_called_otherwise():
    document = document_of(drafted(*REPORTS))
    assert document["observe"]["request"]["path"] == "/projects/${input.project}/reports/${job.id}"
    assert document["collect"]["from"]["request"]["path"] == "/projects/${input.project}/reports/${job.id}/content"
    assert "# id is taken for the job's id" in drafted(*REPORTS)


def test_an_id_may_be_the_last_part_of_a_header_or_stand_in_the_query():
    assert document_of(drafted(*RENDERS))["create"]["job"] == {"id": "last_segment(headers.location)"}
    assert document_of(drafted(*QUERIES))["observe"]["request"]["query"] == {"query_id": "${job.id}"}


@pytest.mark.parametrize(
    ("which", "place"),
    [("reports", ("json", "request_id")), ("renders", ("headers", "Idempotency-Key")), ("queries", ("query", "requestId"))],
)
def test_an_idempotency_key_is_sent_where_the_document_has_it_and_how_long_it_holds_is_a_hole(which: str, place: tuple[str, str]):
    create = document_of(drafted(*DRAFTS[which]))["create"]
    assert create["request"][place[0]][place[1]] == "${token}"
    assert create["token"]["window"] == "?"


def test_a_file_of_a_multipart_body_is_a_file_of_the_contract():
    document = document_of(drafted(*RENDERS))
    assert document["files"] == {"scene": {"media": "?", "max_bytes": "?"}}
    assert document["create"]["request"]["multipart"] == {
        "scene": {"file": "scene"},
        "quality": "${input.quality}",
        "look": "${input.look}",
    }
    assert set(document["input"]["properties"]) == {"quality", "look"}


def test_the_input_is_what_may_be_written_and_can_be_carried():
    document = document_of(drafted(*REPORTS))
    assert document["input"] == {
        "type": "object",
        "required": ["project", "account", "format"],
        "additionalProperties": False,
        "properties": {
            "project": {"type": "string"},
            "account": {"type": "string", "minLength": 1},
            "limit": {"type": "integer", "minimum": 1},  # its maximum is above what canonical JSON carries
            "filter": {"type": "object", "properties": {"field": {"type": "string"}, "any": {"type": "array", "items": {}}}},
            "odd": {"type": "string"},  # its pattern is not of linear time
            "dashed-name": {"type": "string"},
            "format": {"type": ["string", "null"], "enum": ["csv", "pdf", None]},
        },
    }
    assert document["create"]["request"]["json"]["dashed-name"] == '${input."dashed-name"}'
    assert "left out here: property odd-name: {}." in drafted(*REPORTS)


def test_a_server_with_variables_is_a_target():
    document = document_of(drafted(*RENDERS))
    assert document["http"]["base"] == "https://${target.region}.renders.example/${target.edition}"
    assert document["target"]["region"] == {"kind": "label", "about": "Where your account is, as eu1"}
    assert document["target"]["edition"]["pattern"] == "v6|v7"


def server(address: str, **more: Any) -> Any:
    document = {**SMALL, "servers": [{"url": address, **more}]}
    return document_of(drafted_of(api_of(document), "small.jobs.run", "run", "look").text)


@pytest.mark.parametrize(
    "address", ["https://ada:planted@a.example/v1?key=planted", "https://planted@a.example", "//:planted@a?planted", "?planted"]
)
def test_an_address_of_a_document_is_shown_without_what_may_be_a_credential(address: str):
    text = drafted_of(api_of({**SMALL, "servers": [{"url": address}]}), "small.jobs.run", "run", "look").text
    assert "the document: " in text
    assert "planted" not in text


SMALL: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/jobs": {"post": {"operationId": "run", "responses": {"202": {}}}},
        "/jobs/{id}": {"get": {"operationId": "look", "responses": {"200": {}}}},
    },
}


def small(**create: Any) -> OpenApi:
    paths = {**SMALL["paths"], "/jobs": {"post": {**SMALL["paths"]["/jobs"]["post"], **create}}}
    return api_of({**SMALL, "paths": paths})


@pytest.mark.parametrize(
    ("address", "base"),
    [
        ("/api/v2/", "${target.server}/api/v2"),
        ("", "${target.server}"),
        ("https://{host}:{port}/v1", "${target.server}/v1"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("{scheme}://api.example", "?"),
        ("https://user:secret@api.example", "?"),
        ("https://api.example/${secret.acme}", "?"),
        ("https://api.example/\nfoo: bar", "?"),
        ("//api.example", "${target.server}//api.example"),
    ],
)
def test_an_address_is_a_base_or_a_target_or_a_hole(address: str, base: str):
    assert server(address)["http"]["base"] == base


SCHEMES = {
    "bearer": {"type": "http", "scheme": "Bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "key"},
    "machine": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://x.example"}}},
    "person": {"type": "oauth2", "flows": {"authorizationCode": {}}},
    "oidc": {"type": "openIdConnect"},
    "evil": {"type": "apiKey", "in": "header", "name": "X: y\r\nZ"},
}


@pytest.mark.parametrize(
    ("security", "auth"),
    [
        ([{"bearer": []}], {"bearer": "small"}),
        ([{"basic": []}], {"basic": "small"}),
        ([{"query": []}], {"query": {"key": "${secret.small}"}}),
        ([{"cookie": []}], "?"),
        ([{"cookie": []}, {"person": []}], {"bearer": "small"}),
        ([{"machine": []}], {"oauth2": "small"}),
        ([{"oidc": []}], {"bearer": "small"}),
        ([{"bearer": [], "query": []}], "?"),
        ([{}, {"basic": []}], {"basic": "small"}),
        ([{"evil": []}], "?"),
        ([{"nowhere": []}], "?"),
        ([], "none"),
        ([{}], "none"),
        (None, {"bearer": "small"}),
    ],
)
def test_the_credential_is_sent_as_the_operation_asks_for_it(security: Any, auth: Any):
    api = small(**({} if security is None else {"security": security}))
    components: Any = {"securitySchemes": SCHEMES}
    api.document["components"] = components
    assert document_of(drafted_of(api, "small.jobs.run", "run", "look").text)["http"]["auth"] == auth


def test_a_job_that_the_caller_names_has_that_name():
    paths = {"/jobs/{name}": {"put": {"operationId": "put", "parameters": [NAMED], "responses": {"201": {}}}, "get": STATUS}}
    text = drafted_of(api_of({**SMALL, "paths": paths}), "small.jobs.put", "put", "look").text
    assert document_of(text)["create"]["job"] == {"id": "input.name"}
    assert document_of(text)["observe"]["request"]["path"] == "/jobs/${input.name}"
    assert "the caller names the job" in text


NAMED = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
STATUS = {"operationId": "look", "parameters": [NAMED], "responses": {"200": {}}}


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ({"application/json": {"schema": {"type": "array", "items": {}}}}, {"json": "${input.body}"}),
        (
            {"application/merge-patch+json": {"schema": {"properties": {"a": {}}}}},
            {"json": "${input}", "headers": {"Content-Type": "application/merge-patch+json"}},
        ),
        ({"application/x-www-form-urlencoded": {"schema": {"properties": {"a": {}}}}}, {"form": {"a": "${input.a}"}}),
        (
            {
                "multipart/form-data": {
                    "schema": {"properties": {"all": {"type": "array", "items": {"format": "binary"}}, "o": {"type": "object"}}}
                }
            },
            {"multipart": {"all": {"file": "all"}, "o": "${input.o}"}},
        ),
        ({"text/csv": {"schema": {"type": "string"}}}, {"file": "content"}),
        ({"application/x-ndjson": {}}, {"file": "content"}),
        ({}, {}),
    ],
)
def test_a_body_is_sent_as_its_media_type_asks(body: Any, sent: Any):
    request = document_of(drafted_of(small(requestBody={"content": body}), "small.jobs.run", "run", "look").text)["create"]["request"]
    assert {name: value for name, value in request.items() if name not in ("method", "path")} == sent


def test_what_must_be_sent_and_is_not_known_is_a_hole():
    asked = [{"name": name, "in": place, "required": True} for name, place in (("X-Org", "header"), ("Host", "header"))]
    create = document_of(drafted_of(small(parameters=asked), "small.jobs.run", "run", "look").text)["create"]
    assert create["request"]["headers"] == {"X-Org": "?"}
    assert create["job"] == {"id": "?"}


@pytest.mark.parametrize("name", ["client_id", "X-Client-Id", "token", "request"])
def test_who_asks_is_no_idempotency_key(name: str):
    asked = [{"name": name, "in": "header", "schema": {"type": "string"}}]
    assert document_of(drafted_of(small(parameters=asked), "small.jobs.run", "run", "look").text)["create"]["token"] == "none"


def answering(status: Any, **more: Any) -> Any:
    shown = {"type": "object", "properties": {"data": {"type": "object", "properties": {"job": {"type": "object", "properties": status}}}}}
    answer = {"200": {"description": "It", "content": {"application/json": {"schema": shown}}}}
    document = json.loads(json.dumps(SMALL))
    document["paths"]["/jobs/{id}"]["get"]["responses"] = answer
    document["paths"] |= more.get("paths", {})
    return document


@pytest.mark.parametrize(
    ("status", "key", "words"),
    [
        ({"code": {"type": "integer", "enum": [10, 40]}, "message": {"type": "string"}}, "code", [10, 40]),
        ({"message": {"type": "string"}, "name": {"enum": ["busy", "done"]}}, "name", ["busy", "done"]),
        ({"code": {"type": "integer"}, "value": {"type": "string", "enum": ["done"]}}, "value", ["done"]),
        ({"code": {"type": "integer"}}, "code", ["?"]),
    ],
)
def test_a_state_that_is_an_object_is_read_by_what_in_it_is_called_like_one(status: Any, key: str, words: list[Any]):
    document = answering({"status": {"type": "object", "properties": status}})
    states = document_of(drafted_of(api_of(document), "small.jobs.run", "run", "look").text)["observe"]["states"]
    shown = [
        state["when"][f"body.data.job.status.{key}"] for state in states if isinstance(state["when"], dict) and len(state["when"]) == 1
    ]
    assert shown[: len(words)] == words


@pytest.mark.parametrize(
    ("media", "schema", "pages", "format"),
    [
        ("application/x-ndjson", {}, {"next": "?"}, "jsonl"),
        ("text/csv", {}, {"next": "?"}, "csv"),
        ("application/json", {"properties": {"rows": {"type": "array"}}}, {"items": "body.rows", "next": "?"}, "jsonl"),
        ("application/json", {}, {"items": "?", "next": "?"}, "jsonl"),
    ],
)
def test_a_result_that_is_asked_for_by_a_cursor_is_not_taken_for_its_first_page(media: str, schema: Any, pages: Any, format: str):
    asking = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}, {"name": "cursor", "in": "query"}]
    answer = {"200": {"description": "Rows", "content": {media: {"schema": schema}}}}
    rows = {"/jobs/{id}/rows": {"get": {"operationId": "rows", "parameters": asking, "responses": answer}}}
    document = answering({"status": {"type": "string"}}, paths=rows)
    collect = document_of(drafted_of(api_of(document), "small.jobs.run", "run", "look", None, "rows").text)["collect"]
    assert collect["from"]["request"]["query"] == {"cursor": "${page.next}"}
    assert (collect["from"]["pages"], collect["format"]) == (pages, format)


def test_a_state_of_which_no_word_tells_is_asked_for():
    listed: Any = {"properties": {"status": {"oneOf": [{"enum": ["done", "?", 7, None]}, {"enum": ["${x}", "failed"]}]}}}
    paths = {
        **SMALL["paths"],
        "/jobs/{id}": {"get": {**STATUS, "responses": {"2XX": {"content": {"application/json": {"schema": listed}}}}}},
    }
    document = document_of(drafted_of(api_of({**SMALL, "paths": paths}), "small.jobs.run", "run", "look").text)
    assert document["observe"]["states"] == [
        {"when": {"body.status": "done"}, "is": "succeeded"},
        {"when": {"body.status": {"pattern": "[?]"}}, "is": "?"},
        {"when": {"body.status": 7}, "is": "?"},
        {"when": {"body.status": "$${x}"}, "is": "?"},
        {"when": {"body.status": "failed"}, "is": "failed"},
    ]
    listed["properties"]["status"] = {"enum": ["done", "running"]}
    document = document_of(drafted_of(api_of({**SMALL, "paths": paths}), "small.jobs.run", "run", "look", "run").text)
    assert document["observe"]["states"][2:] == [{"when": "?", "is": "failed"}, {"when": "?", "is": "cancelled"}]


# What is no document, or not whole


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"openapi": "3.0.0", "paths": }', r":1:31: not JSON"),
        (b'{"openapi": "3.0.0\xff"}', "not UTF-8"),
        (b'{"a": ' + b"[" * 200_000, "levels too many"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "numbers too long"),
        (b"openapi: 3.0.0\npaths: [", r":[23]:[0-9]+: YAML"),
        (b"openapi: \xff", "UTF-8"),
        (b"- " * 200 + b"a", "at most 100 levels"),
        (b"openapi: !!python/object:os.system {}", "without a tag"),
        (b"a: &a [1, 1]\nb: &b [*a, *a]\nopenapi: 3.1.0\nopenapi: 3.0.0", "the key openapi once"),
        (b"", "the file is empty"),
        (b"just text", "no OpenAPI 3 document"),
        (b'{"openapi": 3}', "no OpenAPI 3 document"),
        (b'{"openapi": "2.0"}', "no OpenAPI 3 document"),
    ],
)
def test_what_is_no_document_is_refused_with_its_place(data: bytes, said: str, tmp_path: Path):
    path = tmp_path / "api"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=said):
        read_openapi(path)


def test_swagger_2_is_refused_with_what_to_do():
    with pytest.raises(BadInput, match="Swagger 2") as refused:
        read_openapi(DOCUMENTS / "swagger2.json")
    assert "convert" in refused.value.hint


def test_a_document_has_a_size(tmp_path: Path):
    with pytest.raises(BadInput, match="can't be read"):
        read_openapi(tmp_path)
    text = json.dumps({**SMALL, "x-filling": " " * (MAX_BYTES - 400)})
    (tmp_path / "large.json").write_text(text)
    assert read_openapi(tmp_path / "large.json").operation("run").id == "run"
    (tmp_path / "larger.json").write_text(text + " " * 400)
    with pytest.raises(BadInput, match="larger than 16 MiB"):
        read_openapi(tmp_path / "larger.json")


def test_an_unknown_operation_is_answered_with_those_that_are_near():
    api = read_openapi(DOCUMENTS / "reports.yaml")
    with pytest.raises(BadInput, match="has no operation createReports") as refused:
        api.operation("createReports")
    assert refused.value.hint == "it has createReport, getReport, cancelReport"
    with pytest.raises(BadInput) as refused:
        OpenApi({"openapi": "3.1.0"}, "empty").operation("x")
    assert refused.value.hint == "it has none at all"
    assert api.operation("post /projects/{project}/reports").id == "createReport"


# Hostile documents


def test_references_that_double_at_each_level_cost_no_more_than_others():
    schemas: dict[str, Any] = {f"s{n}": {"properties": {x: ref(n + 1) for x in "abcdefgh"}} for n in range(20)}
    api = small(requestBody={"content": {"application/json": {"schema": ref(0)}}})
    api.document["components"] = {"schemas": {**schemas, "s20": {"type": "string"}}}
    assert list(document_of(drafted_of(api, "small.jobs.run", "run", "look").text)["input"]["properties"]) == [*"abcdefgh"]


def ref(number: int) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/s{number}"}


def test_a_reference_may_lead_into_a_list_and_be_encoded():
    api = small(parameters=[{"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}])
    other: Any = {"post": {"operationId": "other", "parameters": [{"$ref": "#/paths/~1jobs/%70ost/parameters/0"}]}}
    as_node(api.document["paths"])["/other"] = other
    request = document_of(drafted_of(api, "small.jobs.run", "other", "look").text)["create"]["request"]
    assert request["headers"] == {"Idempotency-Key": "${token}"}


def test_a_parameter_without_a_value_is_asked_for_where_it_is_needed():
    asked = [
        {"name": "tenant", "in": "query", "required": True},
        {"name": "view", "in": "query", "required": True, "schema": {"default": True}},
    ]
    look: Any = {**STATUS, "parameters": [NAMED, *asked], "requestBody": {"content": {"application/json": {"schema": {"required": ["x"]}}}}}
    paths = {**SMALL["paths"], "/jobs/{name}": {"get": look}}
    del paths["/jobs/{id}"]
    request = document_of(drafted_of(api_of({**SMALL, "paths": paths}), "small.jobs.run", "run", "look").text)["observe"]["request"]
    assert request == {"method": "GET", "path": "/jobs/${job.id}", "query": {"tenant": "?", "view": "true"}, "json": "?"}


def test_a_chain_of_parts_that_never_ends_is_cut():
    api = small(requestBody={"content": {"application/json": {"schema": ref(0)}}})
    schemas: dict[str, Any] = {f"s{n}": {"allOf": [ref(n + 1)], "properties": {f"p{n}": {"type": "string"}}} for n in range(2_000)}
    api.document["components"] = {"schemas": schemas}
    assert {"p0", "p1"} <= document_of(drafted_of(api, "small.jobs.run", "run", "look").text)["input"]["properties"].keys()


def test_more_than_a_contract_can_hold_is_refused():
    schema: Any = {"properties": {f"p{n}": {"enum": [*range(100)]} for n in range(200)}}
    api = small(requestBody={"content": {"application/json": {"schema": schema}}})
    with pytest.raises(BadInput, match="more than a contract can hold"):
        drafted_of(api, "small.jobs.run", "run", "look")


EVIL = [
    *(
        "x\nevil: true",
        "a: b",
        "- x",
        "# y",
        "${secret.small}",
        "$${",
        "$",
        "'",
        '"',
        "}",
        "{{",
        "&a",
        "*a",
        "!!t",
        "%Y",
        "<<",
        "null",
        "~",
    ),
    *(
        "",
        "1e3",
        "0x10",
        "?",
        "\u2028evil: true",
        "\x00",
        "\x85",
        "\u202e",
        "\ud800",
        "\ufeff",
        "é\U0001f600",
        "a" * 5_000,
        "../x",
        "C:\\x",
    ),
]


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_of_a_document_leaves_its_place(evil: str, tmp_path: Path):
    shown: Any = {"properties": {"status": {"enum": [evil, "done"]}, evil: {"type": "string"}, "id": {"description": evil}}}
    answer: Any = {"description": evil, "content": {"application/json": {"schema": shown}}, "headers": {evil: {}}}
    asked: Any = [{"name": evil, "in": place, "required": True, "schema": {"default": evil}} for place in ("query", "header", "path")]
    body: Any = {
        "content": {"multipart/form-data": {"schema": {"required": [evil], "properties": {evil: {"enum": [evil], "pattern": evil}}}}}
    }
    operation = {"operationId": "run", "summary": evil, "parameters": asked, "requestBody": body, "security": [{evil: []}]}
    other = {"parameters": asked, "requestBody": {**body, "required": True}, "responses": {"200": answer, "202": answer, evil: answer}}
    api = api_of(
        {
            "openapi": "3.1.0",
            "info": {"title": evil, "version": evil},
            "servers": [{"url": f"https://a.example/{evil}", "variables": {evil: {"default": evil, "description": evil, "enum": [evil]}}}],
            "paths": {
                f"/jobs/{evil}": {"post": {**operation, "responses": {"200": answer, "409": answer, "422": answer, "default": answer}}},
                f"/jobs/{{{evil}}}/{{id}}": {"get": {**other, "operationId": "look"}, "delete": {**other, "operationId": "stop"}},
            },
            "components": {"securitySchemes": {evil: {"type": "apiKey", "in": "header", "name": evil}}},
        },
        evil,
    )
    made = drafted_of(api, "evil.jobs.run", "run", "look", "stop", "look", "look")
    document = document_of(made.text)
    assert list(document) == [key for key in ORDER if key in document]
    assert "evil" not in document
    found = findings_of(made.text, "evil.jobs.run", tmp_path)
    assert {finding.code for finding in found} == {"hole"}
    assert len(found) == made.holes
    assert "${secret" not in json.dumps([document[key] for key in ("effect", "create", "observe", "collect")]).replace("$${", "")


ORDER = ["contract", "version", "about", "provider", "target", "input", "files", "effect", "http", "errors", "create", "observe", "cancel",
         "collect", "reconcile"]  # fmt: skip


LEAVES = st.text(max_size=40) | st.integers(-(2**53) + 1, 2**53 - 1) | st.booleans() | st.none() | st.floats(-1e6, 1e6)
REMARKED = st.builds(Said, st.text(max_size=40) | st.booleans(), st.text(max_size=300)) | st.builds(hole, st.text(max_size=300))
TREES: st.SearchStrategy[Any] = st.recursive(
    LEAVES | REMARKED, lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=40), below, max_size=4), max_leaves=20
)


@given(content=st.dictionaries(st.text(max_size=40), TREES, min_size=1, max_size=3), comment=st.text(max_size=300))
def test_what_is_written_reads_back_as_it_was(content: dict[str, Tree], comment: str):
    made = written([Section(content, comment)])
    assert document_of(made.text) == bare(content)
    assert made.holes == str_count(bare(content))


def bare(value: Any) -> Any:
    match value:
        case Said():
            return bare(value.value)
        case dict():
            return {bare(name): bare(item) for name, item in value.items()}
        case list():
            return [bare(item) for item in value]
        case str():
            return "".join("\ufffd" if 0xD800 <= ord(letter) < 0xE000 else letter for letter in value)
        case _:
            return value


def str_count(value: Any) -> int:
    match value:
        case dict():
            return sum(map(str_count, value.values()))
        case list():
            return sum(map(str_count, value))
        case _:
            return int(value == "?")
