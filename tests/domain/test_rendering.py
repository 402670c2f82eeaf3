"""What is sent is what the contract says, to where it says, or nothing is sent."""

import base64
import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.contract import Contract
from domain.effects import effect_preview
from domain.errors import AddressError, RenderError, SakshiError
from domain.exchange import Request
from domain.language.calls import Output, Verify
from domain.language.expressions import Scope
from domain.rendering import json_bytes, origin, origins, render
from domain.results.expectations import Expectations, expectations, passing
from tests.domain.sample_contract import sample

SCOPE = Scope(input={"name": "x"}, token="tok", trace_id="trace-1", job={"id": "7"})


def built(scope: Scope = SCOPE, **request: Any) -> Request:
    """The status request of the sample with other keys."""
    contract = sample(
        observe__request={"method": "POST", **request},
        http__hosts={"https://files.example": "none"},
        create__job={"id": "body.id", "none": "body.none"},
        input={"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}, "additionalProperties": True},
    )
    assert contract.observe is not None
    return render(contract, contract.observe.request, scope)


def job(value: Any) -> Scope:
    return replace(SCOPE, job={"id": value})


def test_the_create_is_rendered_with_token_trace_and_canonical_body() -> None:
    contract = sample()
    request = render(contract, contract.create.request, replace(SCOPE, input={"note": "é", "name": "x"}))
    assert request == Request(
        "POST",
        "https://api.sample.example/jobs",
        (("Idempotency-Key", "tok"), ("Accept", "application/json"), ("Content-Type", "application/json"), ("X-Trace-ID", "trace-1")),
        '{"name":"x","note":"é"}'.encode(),
    )


def test_a_contract_has_its_own_accept_and_content_type_and_needs_no_trace() -> None:
    request = built(Scope(job={"id": "7"}), path="/x", headers={"accept": "text/csv", "Content-type": "a/b"}, json={})
    assert request.headers == (("accept", "text/csv"), ("Content-type", "a/b"))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("a", "/j/a"),
        ("a/b", "/j/a%2Fb"),
        ("a b?c#d", "/j/a%20b%3Fc%23d"),
        ("é", "/j/%C3%A9"),
        ("50%", "/j/50%25"),
        ("...", "/j/..."),
        (7, "/j/7"),
        (10**30, "/j/1" + "0" * 30),
        ("${input.name}", "/j/$%7Binput.name%7D"),
    ],
)
def test_a_hole_in_a_path_is_one_segment(value: Any, path: str) -> None:
    assert built(job(value), path="/j/${job.id}").url == f"https://api.sample.example{path}"


@pytest.mark.parametrize(
    "value",
    [
        "",
        ".",
        "..",
        "%2e%2e",
        "%2E.",
        "%252e%252e",
        "a/../b",
        "a%2f..%2fb",
        "x\x00",
        "a\nb",
        "\ud800",
        None,
        True,
        [],
        {},
        "%25" * 9 + "2525252525252525252e",
    ],
)
def test_a_hole_that_could_lead_elsewhere_is_an_error(value: Any) -> None:
    with pytest.raises(RenderError):
        built(job(value), path="/j/${job.id}")


@pytest.mark.parametrize("path", ["/j/.${job.id}/x", "/j/../${job.id}", "/j/%2e./x"])
def test_dots_of_the_template_itself_are_an_error(path: str) -> None:
    with pytest.raises(RenderError):
        built(job("%2e" if ".${" in path else "a"), path=path)


def test_slashes_are_kept_where_the_contract_says_so_but_no_dots() -> None:
    assert built(job("a/b c"), path="/j/${keep_slashes(job.id)}/x").url.endswith("/j/a/b%20c/x")
    for value in ("a/../b", "/a", "a//b", "a/"):
        with pytest.raises(RenderError):
            built(job(value), path="/j/${keep_slashes(job.id)}")


@pytest.mark.parametrize(
    ("given_url", "url"),
    [
        ("/jobs/7?x=1", "https://api.sample.example/jobs/7?x=1"),
        ("jobs/7", "https://api.sample.example/jobs/7"),
        ("https://api.sample.example/jobs/7", "https://api.sample.example/jobs/7"),
        ("https://files.example/a", "https://files.example/a"),
    ],
)
def test_an_address_from_an_answer_is_taken_below_allowed_origins(given_url: str, url: str) -> None:
    assert built(job(given_url), url="${job.id}").url == url


@pytest.mark.parametrize(
    "given_url",
    [
        "https://evil.example/", "http://api.sample.example/", "//evil.example/", "https://api.sample.example@evil.example/", "",
        "\\\\evil",
        "https://api.sample.example/#x", "ht\ttps://api.sample.example/", "https://api.sample.example/../x", "javascript:alert(1)",
        "x" * 9000,
        "https://169.254.169.254/latest", "/a/%2e%2e/b", None, ["x"],
    ],
)  # fmt: skip
def test_an_address_that_the_contract_does_not_allow_is_not_called(given_url: Any) -> None:
    with pytest.raises((AddressError, RenderError)):
        built(job(given_url), url="${job.id}")


def test_another_host_of_the_contract_can_stand_in_for_the_base() -> None:
    assert built(path="/x", host="https://files.example").url == "https://files.example/x"


def test_the_query_repeats_lists_and_leaves_out_what_has_no_value() -> None:
    scope = replace(SCOPE, input={"list": ["a b", 1, True], "t": "&=?"})
    url = built(scope, path="/x", query={"l": "${input.list}", "t": "${input.t}", "n": None, "z": "${input.z}", "k": [1, "${input.t}"]}).url
    assert url == "https://api.sample.example/x?l=a%20b&l=1&l=true&t=%26%3D%3F&k=1&k=%26%3D%3F"
    assert built(job("/x?a=1"), url="${job.id}", query={"b": 2}).url.endswith("/x?a=1&b=2")
    with pytest.raises(RenderError):
        built(scope, path="/x", query={"m": {"a": 1}})


def test_headers_are_printable_ascii_and_left_out_without_a_value() -> None:
    assert ("X-A", "b 7") in built(path="/x", headers={"X-A": "b ${job.id}", "X-B": "${job.none}"}).headers
    assert "X-B" not in dict(built(path="/x", headers={"X-B": "${job.none}"}).headers)
    for value in ("a\r\nX: y", "é", " a", "\x7f", "x" * 9000, ["a"]):
        with pytest.raises(RenderError):
            built(job(value), path="/x", headers={"X-A": "${job.id}"})


def test_a_form_may_be_one_hole_that_gives_a_map() -> None:
    scope = replace(SCOPE, input={"name": "x", "lines": ["a", "b"]})
    assert parse_qsl(built(scope, path="/x", form="${input}").body.decode()) == [("name", "x"), ("lines[]", "a"), ("lines[]", "b")]
    for form in ("${input.lines}", "${input.name}", "${input.none}"):
        with pytest.raises(RenderError, match="no map of fields"):
            built(scope, path="/x", form=form)


def test_forms_nest_maps_and_lists() -> None:
    scope = replace(SCOPE, input={"m": {"a": [1, {"b": "x y"}], "n": None}})
    request = built(scope, path="/x", form={"f": "${input.m}", "z": "${input.z}"})
    assert dict(request.headers)["Content-Type"] == "application/x-www-form-urlencoded"
    assert parse_qsl(request.body.decode(), keep_blank_values=True) == [("f[a][]", "1"), ("f[a][][b]", "x y"), ("f[n]", "")]


def test_text_is_sent_with_its_type_and_null_is_a_body() -> None:
    request = built(path="/x", text="id=${job.id}", content_type="text/x")
    assert (request.body, dict(request.headers)["Content-Type"]) == (b"id=7", "text/x")
    assert built(path="/x", json=None).body == b"null"
    assert built(path="/x").body == b""
    assert "Content-Type" not in dict(built(path="/x").headers)


def test_a_whole_body_without_a_value_is_an_error() -> None:
    with pytest.raises(RenderError):
        built(path="/x", json="${job.none}")


def test_a_body_with_a_larger_integer_keeps_all_digits() -> None:
    assert json_bytes({"b": 10**20, "a": "é"}) == '{"a":"é","b":100000000000000000000}'.encode()
    for value in (float("inf"), "\ud800"):
        with pytest.raises(RenderError):
            json_bytes(value)


def test_a_stored_request_comes_back_as_it_was() -> None:
    request = replace(built(path="/x", headers={"X-Name": "${input.name}"}, json="${input}"), body=bytes(range(256)), redirects=2)
    stored = json.loads(json.dumps(request.to_json()))
    assert Request.from_json(stored) == request


def test_redirects_are_those_of_the_contract() -> None:
    assert built(path="/x").redirects == 0
    assert built(method="GET", path="/x", redirects=2).redirects == 2


def test_origins_are_listed_with_their_authentication_the_base_first() -> None:
    contract = sample(
        target={"s": {"kind": "origin"}},
        http__base="${target.s}/api",
        http__hosts={"https://*.x.example": "none", "https://s.example": "none"},
    )
    target: Any = {"s": "https://s.example"}
    assert origin(contract, target) == "https://s.example"
    assert [(name, auth.kind) for name, auth in origins(contract, target)] == [
        ("https://s.example", "bearer"),
        ("https://*.x.example", "none"),
    ]
    request = render(contract, contract.create.request, replace(SCOPE, target=target))
    assert request.url == "https://s.example/api/jobs"


def preview(scope_input: Any, **effect: Any) -> Any:
    plain = {"class": "money", "resource": "r/${input.name}", "summary": "Pay", **effect}
    contract = sample(
        effect=plain,
        input={"type": "object", "required": ["name", "minor", "who"], "properties": {"name": {}, "minor": {}, "who": {}, "note": {}}},
    )
    return effect_preview(contract, scope_input, {})


def test_the_effect_is_computed_from_the_input() -> None:
    found = preview(
        {"name": "n", "minor": 500, "who": "w"},
        recipient="${input.who}",
        amount={"minor": "${input.minor}", "currency": "EUR"},
        cost="unknown",
        fields={"the note": "${input.note}", "name": "${input.name}"},
        data_leaving=["names"],
        after_cancel="nothing",
    )
    assert (found.cls, found.resource, found.summary, found.recipient, found.cost) == ("money", "r/n", "Pay", "w", "unknown")
    assert (found.amount.minor, found.amount.currency) == (500, "EUR")
    assert (found.fields, found.data_leaving, found.after_cancel) == ({"name": "n"}, ("names",), "nothing")
    assert preview({"name": "n"}, recipient="${input.who}", cost={"minor": 1, "currency": "USD"}).recipient is None


@pytest.mark.parametrize("minor", [1.5, True, "5", None, -1, 2**53])
def test_an_amount_is_whole_minor_units(minor: Any) -> None:
    with pytest.raises(RenderError):
        preview({"name": "n", "minor": minor}, amount={"minor": "${input.minor}", "currency": "EUR"})


def test_an_effect_that_cannot_be_shown_is_an_error() -> None:
    with pytest.raises(RenderError):
        preview({}, cost="unknown")
    with pytest.raises(RenderError):
        preview({"name": "n"}, amount={"minor": 1, "currency": "euro"})


DIGEST = "ab" * 32


def wanted(body: dict[str, Any], **verify: Any) -> Any:
    keys = {
        "content_type": "text/csv",
        "bytes": "${observed.body.size}",
        "sha256": "${observed.body.sum}",
        "records": "${observed.body.rows}",
    }
    collect = sample(collect__verify={**keys, **verify}).collect
    assert collect is not None
    found = expectations(collect, replace(SCOPE, observed={"body": body}))
    assert Expectations.from_json(json.loads(json.dumps(found.to_json()))) == found
    return found


@pytest.mark.parametrize(
    "text", [DIGEST, DIGEST.upper(), f"sha256:{DIGEST}", f"SHA256:{DIGEST}", base64.b64encode(bytes.fromhex(DIGEST)).decode()]
)
def test_a_checksum_is_read_from_hex_and_base64(text: str) -> None:
    found = wanted({"size": 5, "sum": text, "rows": "3"})
    assert (found.content_type, found.bytes, found.sha256, found.records) == ("text/csv", 5, DIGEST, 3)
    assert (found.malformed, found.not_offered) == ((), ())


def test_what_is_not_offered_is_said_and_required_fails() -> None:
    found = wanted({"size": 5}, required=["sha256", "bytes", "schema"], sha256="sha256:${observed.body.sum}")
    assert (found.sha256, found.bytes, found.malformed, found.not_offered) == (None, 5, (), ("sha256", "schema"))
    assert wanted({}, required=["schema"], schema={"type": "array"}).not_offered == ()


@pytest.mark.parametrize("value", ["zz", "ab", DIGEST + "ab", 5, True, [], "é" * 64, "=" * 43])
def test_a_checksum_that_is_none_is_malformed(value: Any) -> None:
    assert wanted({"sum": value}).malformed == ("sha256",)


@pytest.mark.parametrize("value", [-1, 1.5, True, "x", "1" * 19, "٣", []])
def test_a_count_that_is_none_is_malformed(value: Any) -> None:
    assert wanted({"size": value}).malformed == ("bytes",)


def test_a_check_that_is_too_much_or_no_text_is_malformed() -> None:
    assert wanted({}, content_type="${observed" + " | [@, @]" * 40 + "}").malformed == ("content_type",)
    assert wanted({"m": {}}, content_type="x${observed.body.m}").malformed == ("content_type",)
    assert wanted({}, bytes=12).bytes == 12


def test_without_verify_nothing_is_expected() -> None:
    assert expectations(Output(), SCOPE) == Expectations()


def test_checks_that_name_an_answer_or_a_step_are_kept_for_a_later_attempt() -> None:
    assert not passing(None)
    assert not passing(Verify(bytes="${observed.body.size}", sha256="ab", content_type=None))
    assert passing(Verify(bytes="${steps.file.bytes}"))
    assert passing(Verify(sha256="sha256:${headers.x_sum}"))


@given(st.text())
def test_whatever_a_hole_holds_the_path_has_one_segment_that_decodes_to_it(text: str) -> None:
    try:
        url = built(job(text), path="/j/${job.id}/end").url
    except SakshiError:
        return
    before, segment, after = urlsplit(url).path.removeprefix("/").split("/")
    assert (before, unquote(segment, errors="strict"), after) == ("j", text, "end")
    assert urlsplit(url).netloc == "api.sample.example"
    assert not urlsplit(url).query


@given(st.text(), st.sampled_from(["${job.id}", "https://files.example/${job.id}", "/x?y=${job.id}"]))
def test_whatever_an_address_holds_the_request_goes_to_an_allowed_origin(text: str, url: str) -> None:
    try:
        sent = built(job(text), url=url).url
    except SakshiError:
        return
    assert urlsplit(sent).netloc in ("api.sample.example", "files.example")
    assert sent.isascii()


@given(st.dictionaries(st.text(), st.text() | st.integers(-(2**53) + 1, 2**53 - 1) | st.booleans() | st.none()))
def test_input_comes_out_of_the_body_as_it_went_in(value: dict[str, Any]) -> None:
    contract: Contract = sample()
    try:
        request = render(contract, contract.create.request, replace(SCOPE, input=value))
    except SakshiError:
        assert "\\ud" in json.dumps(value)
        return
    assert json.loads(request.body) == value


def test_a_region_is_one_of_the_targets_values() -> None:
    contract = sample(
        target={"region": {"kind": "label"}},
        http__base="https://athena.${target.region}.amazonaws.com",
        http__auth={"sigv4": "aws", "service": "athena", "region": "${target.region}"},
    )
    ((where, auth), *_) = origins(contract, {"region": "eu-central-1"})
    assert (where, auth.region, auth.service) == ("https://athena.eu-central-1.amazonaws.com", "eu-central-1", "athena")
