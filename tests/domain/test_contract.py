"""A contract loads whole, or says what is wrong and where."""

from datetime import date, timedelta
from typing import Any

import pytest

from domain.contract import Contract, validate_input
from domain.errors import AddressError, BadContract, BadInput, InputInvalid, RenderError
from domain.language.checks import ROOTS, WEBHOOK_ALONE
from domain.language.findings import ADVICE, FINDINGS, remedy, safety_findings
from domain.language.loading import contract_from_canonical, found_in, parse_contract
from domain.language.texts import fits
from tests.domain.sample_contract import document, problems, sample

TODAY = date(2026, 11, 30)
REQUEST = {"method": "GET", "path": "/x"}
STEP = {"step": "one", "request": REQUEST, "answers": [{"is": "done"}]}


def test_the_sample_loads_with_its_defaults() -> None:
    contract = sample()
    assert contract.http.timeouts.total == timedelta(seconds=90)
    assert contract.deadlines.approval == timedelta(hours=24)
    assert contract.observe is not None
    assert contract.observe.poll.cap == timedelta(minutes=1)
    assert contract.collect is not None
    assert contract.collect.after == ("succeeded", "partial")
    assert contract.reconcile == ()


def test_the_digest_is_that_of_the_file_before_defaults() -> None:
    assert sample().digest == sample().digest
    assert sample(about="").digest != sample().digest
    assert sample(about="") == sample(about="") != sample()


def test_a_contract_loads_back_from_its_canonical_bytes() -> None:
    contract = sample()
    again = contract_from_canonical(contract.canonical)
    assert again == contract
    assert again.digest == contract.digest


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", b"\xff"])
def test_bytes_that_are_no_contract_are_refused(data: bytes) -> None:
    with pytest.raises(BadContract):
        contract_from_canonical(data)


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"effects": {}}, "effects", "did you mean effect?"),
        ({"create__tokens": {}}, "create.tokens", "did you mean token?"),
        ({"contract": "Sample"}, "contract", "acme.reports.create"),
        ({"contract": ...}, "contract", "must be there"),
        ({"version": "1"}, "version", "an integer"),
        ({"version": True}, "version", "an integer"),
        ({"version": -1}, "version", "greater than or equal"),
        ({"language": 2}, "language", "1"),
        ({"about": 5}, "about", "text"),
        ({"provider": []}, "provider", "a map"),
        ({"provider__verified_on": "30.11.2026"}, "provider.verified_on", "a date"),
        ({"provider__sources": []}, "provider.sources", "at least one"),
        ({"deadlines": {"create": "10"}}, "deadlines.create", "a duration"),
        ({"deadlines": {"create": 10}}, "deadlines.create", "a duration"),
        ({"deadlines": {"create": "3651d"}}, "deadlines.create", "at most 3650d"),
        ({"http__limits": {"response_bytes": "1MB"}}, "http.limits.response_bytes", "a size"),
        ({"http__limits": {"requests_per_second": "1"}}, "http.limits.requests_per_second", "a number"),
        ({"http__auth": {"bearer": "A B"}}, "http.auth.bearer", "credential's name"),
        ({"http__auth": {"bearer": "a", "basic": "b"}}, "http.auth", "one of"),
        ({"http__auth": None}, "http.auth", "the word none"),
        ({"http__auth": "some"}, "http.auth", "none, {bearer: NAME}"),
        ({"http__auth": {"headers": {"X": "fixed"}}}, "http.auth", "exactly one credential"),
        ({"http__auth": {"headers": {"X": "${secret.a}", "Y": "${secret.b}"}}}, "http.auth", "exactly one credential"),
        ({"http__auth": {"headers": {"X": "${secret.A}"}}}, "http.auth", "exactly one credential"),
        ({"http__auth": {"headers": {"X": "${input.name}"}}}, "http.auth", "${secret.NAME}"),
        ({"http__auth": {"sigv4": "a"}}, "http.auth", "together"),
        ({"http__hosts": {"files.x.example": "none"}}, "http.hosts.files.x.example", "an origin"),
        ({"http__hosts": {"https://x.example/path": "none"}}, "http.hosts.https://x.example/path", "an origin"),
        ({"http__trace_header": "X Y"}, "http.trace_header", "pattern"),
        ({"effect__class": "writes"}, "effect.class", "one of"),
        ({"effect__resource": "${"}, "effect.resource", "closed hole"),
        ({"effect__amount": {"minor": 1.5, "currency": "EUR"}}, "effect.amount.minor", "whole minor units"),
        ({"effect__amount": {"minor": "five", "currency": "EUR"}}, "effect.amount.minor", "whole minor units"),
        ({"effect__cost": "free"}, "effect.cost", "unknown"),
        ({"effect__cost": 5}, "effect.cost", "a map"),
        ({"target": {"x": {"kind": "text"}}, "http__base": "https://${target.x}"}, "target.x", "a pattern for kind text"),
        ({"target": {"x": {"kind": "text", "pattern": "("}}}, "target.x.pattern", "RE2"),
        ({"create__request__url": "/x"}, "create.request", "exactly one of path and url"),
        ({"create__request__form": {}}, "create.request", "at most one body"),
        ({"create__request__content_type": "x"}, "create.request", "together"),
        ({"create__request__redirects": 1}, "create.request.redirects", "GET only"),
        ({"create__request__path": "jobs"}, "create.request.path", "begins with /"),
        ({"create__request__path": "/jobs?x=1"}, "create.request.path", "without query"),
        ({"create__request__path": "/jöbs"}, "create.request.path", "need encoding"),
        ({"create__request__method": "get"}, "create.request.method", "one of"),
        ({"create__request__headers": {"Authorization": "${token}"}}, "create.request.headers.Authorization", "http.auth"),
        ({"create__request__headers": {"a b": "${token}"}}, "create.request.headers.a b", "not ours to set"),
        ({"create__request__host": "https://other.example"}, "create.request.host", "http.hosts"),
        ({"create__answers__0__is": "taken"}, "create.answers.0.is", "one of"),
        ({"create__answers": []}, "create.answers", "at least one"),
        ({"create__answers__0__when": {"status": {"min": 1, "pattern": "x"}}}, "create.answers.0.when.status", "exactly one"),
        ({"create__answers__0__when": {"body[": 1}}, "create.answers.0.when.body[", "JMESPath"),
        ({"create__answers__0__when": {"body.t": {"pattern": "(?=x)"}}}, "create.answers.0.when.body.t.pattern", "RE2"),
        ({"create__job": {"name": "body.id"}}, "create.job", "an id"),
        ({"create__job": {"id": ["body.id", "body["]}}, "create.job.id.1", "JMESPath"),
        ({"create__job": {"id": []}}, "create.job.id", "at least one"),
        ({"create__token": {"window": "long"}}, "create.token.window", "a duration"),
        ({"create__token": {"window": "1d", "min": 4}}, "create.token", "beside format uuid"),
        ({"create__token": {"window": "1d", "format": "text", "charset": "ab", "max": 8}}, "create.token", "bits"),
        ({"errors__code": "body["}, "errors.code.0", "JMESPath"),
        ({"observe__progress": {"percent": "body.p", "completed": "body.c"}}, "observe.progress", "either percent"),
        ({"observe__poll": {"floor": "2m"}}, "observe.poll.floor", "above cap"),
        ({"observe__poll": {"factor": 0.5}}, "observe.poll.factor", "greater than"),
        ({"observe": None}, "observe", "the word none"),
        ({"collect__outputs": {"a": {"from": {"request": REQUEST}}}}, "collect", "exactly one of from and outputs"),
        ({"collect__from": {"request": REQUEST, "inline": "observed.body"}}, "collect.from", "exactly one of inline"),
        ({"collect__from": {"inline": "observed.body", "answers": [{"is": "done"}]}}, "collect.from", "beside inline"),
        ({"collect__good_for": "a while"}, "collect.good_for", "a duration"),
        ({"webhook": {"scheme": "basic", "jwks": "x"}}, "webhook", "no jwks under the scheme basic"),
        ({"accepts": [{"finding": "wide-hosts", "because": "x"}]}, "accepts.0.finding", "wide-host"),
        ({"input": {"type": "strin"}}, "input", "a JSON Schema"),
        ({"input__properties__name": {"$ref": "https://x.example/s"}}, "input", "into itself"),
        ({"input__properties__name": {"pattern": "(?=x)"}}, "input", "a JSON Schema"),
        ({"input__$schema": "http://json-schema.org/draft-07/schema#"}, "input", "2020-12"),
        ({"collect__verify": {"schema": {"type": 5}}}, "collect.verify.schema", "a JSON Schema"),
    ],
)
def test_what_is_wrong_is_named_with_its_key(changes: dict[str, Any], key: str, said: str) -> None:
    found = problems(**changes)
    assert any(named == key and said in expected for named, expected in found), found


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"effect__summary": "${job.id}"}, "effect.summary", "job is not known here"),
        ({"effect__summary": "${@}"}, "effect.summary", "@ is not known here"),
        ({"effect__summary": "${input.nmae}"}, "effect.summary", "no input.nmae"),
        ({"effect__summary": "For ${input.note}"}, "effect.summary", "a fallback"),
        ({"http__base": "https://${target.x}"}, "http.base", "target has no x; it has nothing"),
        ({"http__base": "https://${input.name}"}, "http.base", "input is not known here"),
        ({"http__delay_hints": "job.id"}, "http.delay_hints.0", "job is not known"),
        ({"create__request__path": "/${job.id}"}, "create.request.path", "job is not known"),
        ({"create__answers__0__when": {"phase": "seen"}}, "create.answers.0.when.phase", "phase is not known"),
        ({"create__answers__0__when": {"body.x": "${secret.x}"}}, "create.answers.0.when.body.x", "secret is not known"),
        ({"create__request__query": {"a": "${steps.one.x}"}}, "create.request.query.a", "steps has no one"),
        ({"create__request__query": {"a": "${operation.name}"}}, "create.request.query.a", "operation has no name"),
        ({"create__request__query": {"a": "${files.x.bytes}"}}, "create.request.query.a", "files has no x"),
        ({"observe__request__path": "/${job.url}"}, "observe.request.path", "job has no url; it has id"),
        ({"observe__request__headers": {"X": "${token}"}}, "observe.request.headers.X", "token is not known"),
        ({"observe__request__headers": {"X": "${observed.body.x}"}}, "observe.request.headers.X", "observed is not known"),
        ({"create__token": "none"}, "create.request.headers.Idempotency-Key", "no ${token}"),
        ({"create__request__headers": {}}, "create.token", "${token} somewhere"),
        ({"create__answers__1__when": {"status": 202}}, "create.answers.1", "can be reached"),
        ({"observe__states__0": {"is": "running"}}, "observe.states.1", "can be reached"),
        ({"errors__answers": [{"is": "unsure"}, {"when": {"status": 400}, "is": "rejected"}]}, "errors.answers.1", "can be reached"),
        ({"collect__from": [{"request": REQUEST}, {"request": REQUEST}]}, "collect.from.1", "can be reached"),
        ({"create__job": {}}, "create", "a job with an id"),
        ({"observe": "none"}, "observe", "needs a webhook"),
        ({"observe__states__1__is": "partial"}, "collect", "partial"),
        ({"collect__from__request__query": {"x": "${body.x}"}}, "collect.from.0.request.query.x", "body is not known"),
    ],
)
def test_what_only_the_whole_contract_shows_is_named(changes: dict[str, Any], key: str, said: str) -> None:
    found = problems(**changes)
    assert any(named == key and said in expected for named, expected in found), found


SAVING = {**STEP, "save": {"x": "body.x"}}
CSV = {"media": "text/csv", "max_bytes": "1MiB", "from": "input.nested"}
ITEMS = {"submitted": {"count": "input.nested"}, "read": [{"output": "output", "states": [{"is": "failed"}]}]}
SEVERAL: dict[str, Any] = {"collect": {"outputs": {"a": {"from": {"request": REQUEST}}, "b": {"from": {"inline": "observed.body"}}}}}

WHOLE_LANGUAGE: list[dict[str, Any]] = [
    {"files": {"x": CSV}},
    {"http__auth": {"oauth2": "a"}},
    {"http__auth": {"sigv4": "a", "service": "s", "region": "r"}},
    {"http__hosts": {"https://x.example": {"oauth2": "a"}}},
    {"http__quota": {"remaining": "headers.a", "reset": "headers.b"}},
    {"create__before": [{**SAVING, "undo": REQUEST}]},
    {"create__before": [SAVING], "create__token": {"from": "steps.one.x", "window": "1d"}},
    {"observe__before": [STEP]},
    {"observe__counts": {"total": "body.total"}},
    {"observe__counts": {"total": "body.n", "succeeded": "body.ok"}, "observe__states__1__is": "ended", "collect__partial": "attention"},
    {"cancel__before": [STEP]},
    {"cancel__force": {"request": REQUEST, "answers": [{"is": "acknowledged"}]}},
    {"files": {"d": CSV}, "create__request__json": ..., "create__request__multipart": {"a": "${input.name}", "c": {"file": "d"}}},
    {"files": {"x": CSV}, "create__request__json": ..., "create__request__file": "x"},
    {"collect__format": "csv", "collect__from": {"request": REQUEST, "pages": {"next": "body.next"}}},
    {"collect__format": "text", "collect__from": [{"request": REQUEST, "pages": {"more": {"body.more": True}}}]},
    {"collect__before": [STEP]},
    {"collect__each": "observed.body.list", "collect__name": "${each.name}"},
    SEVERAL,
    {"collect__items": ITEMS},
    {"record": {"sensitive": ["body.name"]}},
]


@pytest.mark.parametrize("changes", WHOLE_LANGUAGE)
def test_the_whole_language_is_taken(changes: dict[str, Any]) -> None:
    assert problems(**changes) == []


def test_a_job_that_a_webhook_alone_would_end_is_refused() -> None:
    changes = {"observe": "none", "webhook": {"scheme": "standard_webhooks", "secret": "x"}}
    assert problems(**changes) == [("observe", WEBHOOK_ALONE)]


def _step(place: str, **keys: object) -> dict[str, Any]:
    return {place: [{**STEP, **keys}]}


def _asks(**keys: object) -> dict[str, Any]:
    return {"request": {**REQUEST, **keys}}


def _output(**keys: object) -> dict[str, Any]:
    return {"collect": {"outputs": {"a": {"from": {"request": REQUEST}, **keys}}}}


FORCE = {"request": REQUEST, "answers": [{"is": "acknowledged"}]}

# A place, what it must not know, and the key at which that is said.
STRANGE_ROOTS: list[tuple[dict[str, Any], str, str]] = [
    ({"files": {"x": {**CSV, "from": "job.id"}}}, "files.x.from.0", "job"),
    ({"files": {"x": {**CSV, "from": "files.x.bytes"}}}, "files.x.from.0", "files"),
    ({"effect__summary": "${steps.one.x}"}, "effect.summary", "steps"),
    ({"http__quota": {"remaining": "job.id", "reset": "headers.b"}}, "http.quota.remaining.0", "job"),
    (_step("create__before", request={**REQUEST, "query": {"a": "${body.x}"}}), "create.before.0.request.query.a", "body"),
    (_step("create__before", request={**REQUEST, "query": {"a": "${job.id}"}}), "create.before.0.request.query.a", "job"),
    (_step("create__before", undo={**REQUEST, "query": {"a": "${page.index}"}}), "create.before.0.undo.query.a", "page"),
    (_step("create__before", answers=[{"when": {"items": 1}, "is": "done"}]), "create.before.0.answers.0.when.items", "items"),
    (_step("create__before", same={"job.id": 1}), "create.before.0.same.job.id", "job"),
    (_step("create__before", pages={"next": "items"}), "create.before.0.pages.next.0", "items"),
    (_step("create__before", save={"x": "page.index"}), "create.before.0.save.x.0", "page"),
    ({"create__token": {"from": "body.x", "window": "1d"}}, "create.token.from.0", "body"),
    (_step("observe__before", request={**REQUEST, "query": {"a": "${token}"}}), "observe.before.0.request.query.a", "token"),
    (_step("observe__before", save={"x": "phase"}), "observe.before.0.save.x.0", "phase"),
    ({"observe__counts": {"total": "counts.done"}}, "observe.counts.total.0", "counts"),
    ({"cancel__request__query": {"a": "${page.index}"}}, "cancel.request.query.a", "page"),
    (_step("cancel__before", request={**REQUEST, "query": {"a": "${observed.body}"}}), "cancel.before.0.request.query.a", "observed"),
    ({"cancel__force": {**FORCE, **_asks(query={"a": "${page.index}"})}}, "cancel.force.request.query.a", "page"),
    ({"cancel__force": {**FORCE, "answers": [{"when": {"item": 1}, "is": "refused"}]}}, "cancel.force.answers.0.when.item", "item"),
    ({"cancel__force": {**FORCE, **_step("before", save={"x": "page"})}}, "cancel.force.before.0.save.x.0", "page"),
    ({"create__request__json": ..., "create__request__multipart": {"a": "${job.id}"}}, "create.request.multipart.a", "job"),
    ({"collect__each": "each"}, "collect.each.0", "each"),
    ({"collect__each": "observed.body.l", "collect__when": {"each.x": 1}}, "collect.when.each.x", "each"),
    ({"collect__name": "${each.name}"}, "collect.name", "each"),
    ({"collect__good_for": "${page.index}"}, "collect.good_for", "page"),
    (_step("collect__before", request={**REQUEST, "query": {"a": "${each.x}"}}), "collect.before.0.request.query.a", "each"),
    (_step("collect__before", save={"x": "item.x"}), "collect.before.0.save.x.0", "item"),
    ({"collect__from": {**_asks(query={"a": "${status}"})}}, "collect.from.0.request.query.a", "status"),
    ({"collect__from": {"request": REQUEST, "pages": {"next": "items"}}}, "collect.from.0.pages.next.0", "items"),
    (
        {"collect__from": {"request": REQUEST, "answers": [{"when": {"phase": "x"}, "is": "done"}]}},
        "collect.from.0.answers.0.when.phase",
        "phase",
    ),
    ({"collect__verify": {"bytes": "${body.size}"}}, "collect.verify.bytes", "body"),
    ({"collect__items": {**ITEMS, "submitted": {"count": "item"}}}, "collect.items.submitted.count.0", "item"),
    ({"collect__items": {**ITEMS, "submitted": {"count": "input.nested", "key": "body.x"}}}, "collect.items.submitted.key.0", "body"),
    (
        {"collect__items": {**ITEMS, "read": [{"output": "output", "states": [{"when": {"status": 1}, "is": "failed"}]}]}},
        "collect.items.read.0.states.0.when.status",
        "status",
    ),
    ({"collect__expect": {"item": 1}}, "collect.expect.item", "item"),
    ({**SEVERAL, "collect__expect": {"result.x": 1}}, "collect.expect.result.x", "result"),
    ({"collect__each": "observed.body.l", "collect__expect": {"result.x": 1}}, "collect.expect.result.x", "result"),
    (_output(name="${each.name}"), "collect.outputs.a.name", "each"),
    (_output(each="each"), "collect.outputs.a.each.0", "each"),
    (_output(each="observed.body.l", when={"each": 1}), "collect.outputs.a.when.each", "each"),
    (_output(verify={"bytes": "${body.x}"}), "collect.outputs.a.verify.bytes", "body"),
    (_output(before=[{**STEP, "request": {**REQUEST, "query": {"a": "${item}"}}}]), "collect.outputs.a.before.0.request.query.a", "item"),
    ({"record": {"sensitive": ["job.id"]}}, "record.sensitive.0", "job"),
]


@pytest.mark.parametrize(("changes", "key", "root"), STRANGE_ROOTS)
def test_a_root_that_is_not_known_there_is_an_error(changes: dict[str, Any], key: str, root: str) -> None:
    found = problems(**changes)
    assert any(named == key and said.startswith(f"{root} is not known here") for named, said in found), found


PER_ELEMENT = {
    "each": "observed.body.l",
    "name": "${each.n}",
    "verify": {"bytes": "${each.size}", "content_type": "${headers.content_type}"},
}
STEP_OF_ALL = {**STEP, "request": {**REQUEST, "query": {"page": "${page.next}"}}, "pages": {"next": "body.next", "items": "body.l"}}

KNOWN_ROOTS: list[dict[str, Any]] = [
    {
        "create__before": [{**STEP_OF_ALL, "save": {"x": "items[0].id"}, "undo": {**REQUEST, "query": {"a": "${steps.one.x}"}}}],
        "create__request__query": {"a": "${steps.one.x}"},
    },
    {"observe__before": [{**STEP_OF_ALL, "save": {"x": "items"}}], "observe__request__query": {"a": "${steps.one.x}"}},
    {
        "cancel__force": {
            **FORCE,
            "before": [{**STEP_OF_ALL, "save": {"x": "items"}}],
            "request": {**REQUEST, "query": {"a": "${steps.one.x}"}},
        }
    },
    _output(**PER_ELEMENT, before=[{**STEP_OF_ALL, "request": {**REQUEST, "query": {"a": "${each.id}"}}, "save": {"x": "items"}}]),
    {f"collect__{key}": value for key, value in PER_ELEMENT.items()},
    {
        "collect__format": "csv",
        "collect__from": {"request": {**REQUEST, "query": {"a": "${page.next}"}}, "pages": {"next": "body.next", "records": "body.n"}},
    },
    {
        "collect__format": "csv",
        "collect__from": {"request": {**REQUEST, "query": {"a": "${page.index}"}}, "pages": {"count": "observed.body.parts"}},
    },
    {**SEVERAL, "collect__expect": {"outputs.a.records": 1, "outputs.b.sha256": {"not": None}, "counts.succeeded": 1}},
    {"collect__expect": {"result.x": 1, "outputs.output.bytes": 1}},
    {
        "files": {"x": CSV},
        "collect__items": {
            **ITEMS,
            "submitted": {"file": "x", "key": "item.id"},
            "read": [{"output": "output", "key": "item.id", "states": [{"when": {"item.ok": True}, "is": "succeeded"}], "error": "item.e"}],
        },
    },
    {"files": {"x": {**CSV, "from": "input.nested"}}, "effect__summary": "${files.x.records || 'some'} rows"},
]


@pytest.mark.parametrize("changes", KNOWN_ROOTS)
def test_a_root_that_is_known_there_is_none(changes: dict[str, Any]) -> None:
    assert problems(**changes) == []


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"collect__expect": {"outputs.a.bytes": 1}}, "collect.expect.outputs.a.bytes", "outputs has no a; it has output"),
        ({**SEVERAL, "collect__expect": {"outputs.a.size": 1}}, "collect.expect.outputs.a.size", "outputs.a has no size"),
        ({"collect__expect": {"counts.lost": 1}}, "collect.expect.counts.lost", "counts has no lost"),
        ({"files": {"x": CSV}, "effect__summary": "${files.x.rows}"}, "effect.summary", "files.x has no rows"),
        ({"create__request__json": ..., "create__request__multipart": {"a": "${"}}, "create.request.multipart.a", "closed hole"),
        ({"create__request__json": ..., "create__request__multipart": {"a": 5}}, "create.request.multipart.a", "a map"),
    ],
)  # fmt: skip
def test_a_fact_that_a_root_does_not_have_is_an_error(changes: dict[str, Any], key: str, said: str) -> None:
    found = problems(**changes)
    assert any(named == key and said in expected for named, expected in found), found


def test_every_place_of_the_table_of_roots_can_be_reached() -> None:
    places = [place for place, _ in ROOTS]
    for index, place in enumerate(places):
        assert not any(fits(earlier, tuple(place.split("."))) for earlier in places[:index]), place


def test_user_data_that_looks_like_a_key_is_not_taken_for_one() -> None:
    assert problems(create__request__json={"before": [], "files": 1, "request": {"file": "x"}, "t": "${token}"}) == []


def test_no_observe_is_fine_where_the_create_always_finishes() -> None:
    assert problems(observe="none", cancel="none", create__answers=[{"when": {"status": 200}, "is": "completed"}]) == []


def test_positions_lead_to_the_key_or_to_the_nearest_place_above_it() -> None:
    positions: Any = {
        (): (1, 1),
        ("collect",): (50, 1),
        ("collect", "from"): (51, 3),
        ("collect", "from", "request"): (52, 5),
        ("effects",): (9, 1),
    }
    with pytest.raises(BadContract) as caught:
        parse_contract(document(collect__from={"request": {}}, effects=1), file="f.yaml", positions=positions)
    assert [(finding.line, finding.column, finding.code) for finding in caught.value.findings] == [(9, 1, "unknown-key")]
    with pytest.raises(BadContract) as caught:
        parse_contract(document(collect__from={"request": {"path": "/x"}}), file="f.yaml", positions=positions)
    assert [str(finding) for finding in caught.value.findings] == [
        "f.yaml:52:5: collect.from.request.method: this key, which must be there"
    ]


def test_the_place_of_a_single_value_is_that_of_its_key() -> None:
    positions: Any = {("create",): (20, 1), ("create", "job"): (30, 3), ("create", "job", "id"): (31, 5)}
    with pytest.raises(BadContract) as caught:
        parse_contract(document(create__job={"id": "body["}), file="f.yaml", positions=positions)
    assert [(finding.line, finding.key) for finding in caught.value.findings] == [(31, "create.job.id.0")]


def test_an_inline_source_needs_no_request() -> None:
    assert problems(collect__from=[{"when": {"observed.call": "create"}, "inline": "observed.body"}, {"inline": "observed.body.x"}]) == []


def test_an_enum_may_hold_what_looks_like_a_reference() -> None:
    assert problems(input__properties__note={"enum": [{"$ref": "https://x.example"}]}) == []


@pytest.mark.parametrize("value", [2**53, "\ud800"])
def test_a_file_that_canonical_json_cannot_carry_is_refused(value: Any) -> None:
    with pytest.raises(BadContract):
        sample(about=value)


FAILS = {"when": {"body.state": "failed"}, "is": "failed"}
MARKED: dict[str, Any] = {
    "by": "list",
    "request": {"method": "GET", "path": "/jobs", "query": {"cursor": "${page.next}"}},
    "pages": {"items": "body.jobs", "next": "body.next"},
    "match": {"item.label": "${mark}"},
    "strength": "exact",
    "job": {"id": "item.id"},
}
BY_MARK: dict[str, Any] = {
    "by": "get",
    "request": {"method": "GET", "path": "/labels/${mark}"},
    "answers": [{"when": {"status": 200}, "is": "found"}, {"when": {"status": 404}, "is": "absent"}],
    "job": {"id": "body.id"},
}
DRAFT: dict[str, Any] = {
    "step": "draft",
    "request": {"method": "POST", "path": "/drafts", "headers": {"X-Label": "a-${mark}"}},
    "answers": [{"is": "done"}],
}
PAGED: dict[str, Any] = {"request": {"method": "GET", "path": "/rows", "query": {"cursor": "${page.next}"}}}
GONE = {"when": {"status": 404}, "is": "gone"}


@pytest.mark.parametrize(
    ("states", "codes"),
    [
        ([FAILS, GONE], ["cancel-confirmed-by-gone"]),
        ([FAILS, {"when": {"status": 404, "phase": "cancelling"}, "is": "gone"}], []),
        ([FAILS, {"when": {"status": 404, "phase": ["seen", "cancelling"]}, "is": "gone"}], []),
        ([FAILS, {"when": {"status": 404, "phase": "cancelling"}, "is": "cancelled"}, GONE], []),
        ([FAILS, {"when": {"phase": "seen", "status": 404}, "is": "cancelled"}, {"is": "gone"}], ["cancel-confirmed-by-gone"]),
    ],
)
def test_a_cancel_that_only_gone_confirms_is_said_unless_the_phase_is_named(states: list[dict[str, Any]], codes: list[str]) -> None:
    assert [one.code for one in found_in(sample(observe__states=states), TODAY, "f", {})] == codes
    assert found_in(sample(observe__states=[FAILS, GONE], cancel="none"), TODAY, "f", {}) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"create__token": "none", "create__request__headers": {}}, "create-not-recoverable"),
        ({"create__token__window": "unstated"}, "window-unstated"),
        ({"create__token__window": "1m"}, "deadline-beyond-window"),
        ({"reconcile": [MARKED]}, "mark-unsent"),
        ({"reconcile": [BY_MARK]}, "mark-unsent"),
        ({"reconcile": [MARKED], "cancel__request__json": {"label": "${mark}"}}, "mark-unsent"),
        ({"reconcile": [{**MARKED, "request": {"method": "GET", "path": "/jobs"}}]}, "page-unasked"),
        ({"collect__format": "jsonl", "collect__from": {**PAGED, "pages": {"items": "body.rows", "count": "body.pages"}}}, "page-unasked"),
        (
            {"collect__format": "jsonl", "collect__from": {**PAGED, "pages": {"items": "body.rows", "more": {"body.more": True}}}},
            "page-unasked",
        ),
        ({"create__answers": [{"when": {"status": "202"}, "is": "accepted"}]}, "status-as-text"),
        ({"create__answers": [{"when": {"status": [202, "ok"]}, "is": "accepted"}]}, "status-as-text"),
        ({"observe__states": [FAILS, {"when": {"status": {"not": "404"}}, "is": "running"}]}, "status-as-text"),
        ({"errors__answers": [{"when": {"status": "5xx!"}, "is": "unsure"}]}, "status-as-text"),
        ({"observe__states": [{"when": {"body.state": "stopped"}, "is": "cancelled"}]}, "no-failure-state"),
        ({"observe__states": [{"when": {"body.state": "x"}, "is": "failed"}]}, "cancel-never-confirmed"),
        ({"observe__states": [FAILS, {"when": {"phase": "fresh", "status": 404}, "is": "gone"}]}, "cancel-never-confirmed"),
        ({"observe__states": [FAILS, {"when": {"phase": {"not": "cancelling"}}, "is": "cancelled"}]}, "cancel-never-confirmed"),
        ({"collect__format": "binary"}, "result-unchecked"),
        ({"collect__format": "binary", "collect__verify": {"required": ["bytes"]}}, "result-unchecked"),
        ({"collect__good_for": "1m"}, "result-may-expire"),
        ({"collect__from": {"request": {"method": "GET", "url": "${observed.body.url}"}}}, "host-unlisted"),
        ({"http__hosts": {"https://*.blob.example": "none"}}, "wide-host"),
        ({"webhook": {"scheme": "none"}}, "webhook-unsigned"),
        ({"effect__class": "read"}, "effect-understated"),
        ({"effect__class": "money", "effect__recipient": "w"}, "money-unstated"),
        ({"effect__class": "money", "effect__amount": {"minor": 1, "currency": "EUR"}}, "money-unstated"),
        ({"provider__verified_on": "2025-11-01"}, "stale"),
    ],
)
def test_what_is_unsafe_is_found_and_can_be_accepted(changes: dict[str, Any], code: str) -> None:
    contract = sample(**changes)
    assert code in {finding.code for finding in safety_findings(contract, today=TODAY)}
    accepting = sample(**changes, accepts=[{"finding": code, "because": "tried"}])
    assert code not in {finding.code for finding in found_in(accepting, TODAY, "f", {})}


def test_every_safety_finding_has_its_case_and_the_sample_has_none() -> None:
    assert safety_findings(sample(), today=TODAY) == ()
    quiet = {"collect__good_for": "1d", "collect__format": "binary", "collect__verify": {"bytes": "${observed.body.size}"}}
    assert safety_findings(sample(**quiet), today=TODAY) == ()
    assert len(FINDINGS) == 16
    paid = {"effect__class": "money", "effect__recipient": "w", "effect__amount": {"minor": 1, "currency": "EUR"}}
    assert safety_findings(sample(**paid), today=TODAY) == ()
    assert safety_findings(sample(http__hosts={"https://files.example": "none"}), today=TODAY) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"create__request__headers__X-Label": "${mark}", "reconcile": [MARKED]},
        {"create__request__json": {"label": "${mark}"}, "reconcile": [BY_MARK]},
        {"create__before": [DRAFT], "reconcile": [MARKED]},
        {"reconcile": [{**MARKED, "match": {"item.name": "${input.name}"}, "strength": "heuristic"}]},
    ],
)  # fmt: skip
def test_a_mark_that_a_request_of_the_create_sends_can_be_looked_for(changes: dict[str, Any]) -> None:
    assert "mark-unsent" not in {finding.code for finding in safety_findings(sample(**changes), today=TODAY)}


@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ({"cursor": "${page.next}"}, {"next": "body.next"}),
        ({"cursor": "${page.next || 'first'}"}, {"next": "body.next", "more": {"body.more": True}}),
        ({"at": "${page.index}"}, {"count": "body.pages"}),
        ({"page": "${page.number}"}, {"more": {"body.more": True}}),
        ({"page": "${to_string(page)}"}, {"next": "body.next"}),
        ({}, {"next_url": "body.next"}),
    ],
)
def test_a_request_that_says_which_page_it_asks_for_is_as_it_should_be(query: dict[str, str], pages: dict[str, Any]) -> None:
    source = {"request": {"method": "GET", "path": "/rows", "query": query}, "pages": {"items": "body.rows", **pages}}
    changed = sample(collect__format="jsonl", collect__from=source)
    assert safety_findings(changed, today=TODAY) == ()


@pytest.mark.parametrize("status", [202, "2xx", "400..499", [200, "3xx"], {"not": 404}, {"min": 400, "max": 499}, "${input.name}", None])
def test_a_status_that_is_a_number_or_a_range_is_as_it_should_be(status: object) -> None:
    changed = sample(create__answers=[{"when": {"status": status}, "is": "accepted"}])
    assert safety_findings(changed, today=TODAY) == ()


def test_what_is_accepted_and_not_there_is_said() -> None:
    accepting = sample(accepts=[{"finding": "wide-host", "because": "tried"}])
    assert [(one.key, one.code) for one in found_in(accepting, TODAY, "f", {})] == [("accepts.0.finding", "accepted-in-vain")]


def test_every_finding_says_what_to_do() -> None:
    assert all(remedy(code) for code in (*FINDINGS, *ADVICE))
    assert remedy("invalid") == ""


def test_a_case_that_shows_where_an_address_leads_settles_it() -> None:
    contract = sample(collect__from={"request": {"method": "GET", "url": "${observed.body.url}"}})
    assert [one.path for one in safety_findings(contract, today=TODAY)] == [("collect", "from", 0, "request", "url")]
    assert safety_findings(contract, today=TODAY, shown={("collect", "from", 0, "request", "url")}) == ()


def test_a_file_made_of_the_whole_input_is_a_hope_too() -> None:
    made = sample(effect__class="read", create__request__json={}, files={"x": {"media": "text/csv", "max_bytes": "1MiB", "from": "input"}})
    assert "effect-understated" in {one.code for one in safety_findings(made, today=TODAY)}


def test_each_of_several_outputs_is_looked_at() -> None:
    several = Contract.model_validate(document(collect={"outputs": {"a": {"from": {"request": REQUEST}}}}))
    assert [finding.path for finding in safety_findings(several, today=TODAY)] == [("collect", "outputs", "a")]


def test_a_contract_without_observing_and_collecting_has_no_findings_about_them() -> None:
    bare = {"observe": "none", "cancel": "none", "collect": "none", "create__answers": [{"when": {"status": 200}, "is": "completed"}]}
    assert safety_findings(sample(**bare), today=TODAY) == ()


def test_the_facts_are_what_the_contract_says() -> None:
    facts = sample(
        cancel__repeatable=True, cancel__destroys_finished_jobs=True, observe__terminal_is_final=False, collect__one_time=True,
        collect__partial="attention", create__token__window="unstated", collect__after=["succeeded", "failed"],
        observe__appears_within="5s",
    ).facts()  # fmt: skip
    assert facts.token
    assert facts.token_window_ms == 300_000
    assert facts.cancel_repeatable
    assert facts.destroys_finished_jobs
    assert not facts.terminal_is_final
    assert facts.one_time
    assert facts.partial == "attention"
    assert facts.collect_after == ("succeeded", "failed")
    assert facts.appears_within_ms == 5_000
    assert facts.deadlines_ms.create == 600_000
    assert not facts.observe_none
    assert facts.http_total_ms == 90_000


def test_the_facts_of_a_contract_without_stages_say_so() -> None:
    facts = sample(
        observe="none", cancel="none", collect="none", create__token="none",
        create__request__headers={}, create__answers=[{"is": "completed"}],
    ).facts()  # fmt: skip
    assert facts.observe_none
    assert facts.cancel_none
    assert facts.collect_none
    assert facts.collect_after == ()
    assert facts.token_window_ms is None
    assert facts.terminal_is_final


HOSTS = {"https://files.sample.example": "none", "https://*.wide.example": {"basic": "other"}}


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://api.sample.example/x", "bearer"),
        ("https://API.sample.example:443/x", "bearer"),
        ("https://files.sample.example/x", "none"),
        ("https://a.b.wide.example/x", "basic"),
        ("https://wide.example/x", None),
        ("https://evilwide.example/x", None),
        ("http://api.sample.example/x", None),
        ("https://api.sample.example:444/x", None),
        ("https://api.sample.example.evil.example/", None),
    ],
)
def test_a_credential_goes_to_the_origin_that_lists_it_and_to_no_other(url: str, kind: str | None) -> None:
    auth = sample(http__hosts=HOSTS).auth_for(url, {})
    assert (auth and auth.kind) == kind


@pytest.mark.parametrize(
    "url",
    [
        "https://u@api.sample.example/", "//api.sample.example/", "https://api.sample.example\\@evil/", "https://api.sample.example/#x",
        "https://api sample.example/", "ftp://api.sample.example/", "https://", "https://api.sample.example:x/", "https://x:/",
        "https://x:0/",
        "https://bücher.example/", "https://a..b/", "https://[::1/", "https://*.x.example/", "/x", "",
    ],
)  # fmt: skip
def test_an_address_with_two_readings_is_refused(url: str) -> None:
    with pytest.raises(AddressError):
        sample().auth_for(url, {})


def test_credentials_of_headers_are_named_by_their_templates() -> None:
    auth = sample(http__auth={"headers": {"X-Key": "Key ${secret.some_key}"}}).http.auth
    assert (auth.kind, auth.credential, auth.templates) == ("headers", "some_key", (("X-Key", "Key ${secret.some_key}"),))
    assert sample().http.auth.credential == "sample"
    assert sample(http__auth="none").http.auth.credential is None


TARGETS = {"org": {"kind": "label", "about": "the org"}, "server": {"kind": "origin"}, "zone": {"kind": "text", "pattern": "z[0-9]"}}
GOOD = {"org": "acme", "server": "https://x.example:8443", "zone": "z1"}


def test_a_target_that_fits_is_taken() -> None:
    contract = sample(target=TARGETS, http__base="${target.server}")
    contract.check_target(GOOD)
    assert contract.base(GOOD) == "https://x.example:8443"
    sample().check_target({})


@pytest.mark.parametrize(
    "target",
    [{}, {**GOOD, "more": "x"}, {**GOOD, "org": "a.b"}, {**GOOD, "org": 5}, {**GOOD, "server": "x.example"}, {**GOOD, "zone": "z10"},
     {**GOOD, "server": "https://u@x.example"}, {**GOOD, "server": "https://x.example/path"}],
)  # fmt: skip
def test_a_target_that_does_not_fit_is_bad_input(target: dict[str, Any]) -> None:
    with pytest.raises((BadInput, AddressError)):
        sample(target=TARGETS, http__base="${target.server}").check_target(target)


def test_a_base_without_its_target_or_with_a_query_is_refused() -> None:
    contract = sample(target=TARGETS, http__base="https://${target.org}.x.example")
    with pytest.raises(RenderError):
        contract.base({})
    with pytest.raises(AddressError):
        sample(http__base="https://x.example/?a=1").base({})


def test_input_is_judged_by_the_schema_with_paths() -> None:
    validate_input(sample(), {"name": "x"})
    with pytest.raises(InputInvalid) as caught:
        validate_input(sample(), {"name": 5, "other": 1})
    assert sorted(problem.split(":")[0] for problem in caught.value.problems) == ["$", "$.name"]
    with pytest.raises(InputInvalid, match=r"\$\.list\[1\]"):
        validate_input(sample(input__properties__list={"type": "array", "items": {"type": "integer"}}), {"name": "x", "list": [1, "2"]})
    with pytest.raises(BadInput, match="2\\^53"):
        validate_input(sample(), {"name": 2**53})


OPEN = {
    "type": "object",
    "required": ["must", "ref"],
    "properties": {
        "must": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {}}},
        "ref": {"$ref": "#/$defs/a~1b"},
        "any": {"anyOf": [{"type": "string"}], "properties": {"x": {}}},
        "extra": {"additionalProperties": {"type": "string"}, "properties": {"x": {}}},
        "closed": {"additionalProperties": False},
        "loop": {"$ref": "#/properties/loop"},
        "true": True,
        "lost": {"$ref": "#/$defs/none"},
    },
    "$defs": {"a/b": {"type": "object", "required": ["r"], "properties": {"r": {"type": "string"}}}},
}


@pytest.mark.parametrize(
    ("path", "known", "required"),
    [
        ("must.a", True, True), ("must.b", True, False), ("must.z", False, False), ("ref.r", True, True), ("ref.z", False, False),
        ("any.z", True, False), ("extra.z", True, False), ("closed.z", False, False), ("loop.z", True, False), ("true.z", True, False),
        ("z", False, False),
    ],
)  # fmt: skip
def test_what_the_schema_has_is_known_by_path(path: str, known: bool, required: bool) -> None:
    found = problems(input=OPEN, effect__summary=f"${{input.{path}}}!", effect__resource="x", create__request__json={"t": "${token}"})
    assert any("the input schema has no" in said for _, said in found) is not known
    assert any("a fallback" in said for _, said in found) is (known and not required)


def test_an_editor_is_told_of_the_word_beside_the_value_and_of_the_one_beside_the_list() -> None:
    defined = Contract.model_json_schema()["$defs"]
    window = defined["Token"]["properties"]["window"]
    assert {"const": "unstated"} in window["anyOf"]
    listed, single = defined["Collect"]["properties"]["from"]["anyOf"]
    assert (listed["type"], listed["items"]) == ("array", single)


def test_a_model_alone_has_no_digest() -> None:
    assert Contract.model_validate(document()).digest == ""
