"""Bad files, each with one fault: the finding names file, line, column, key and what was expected there."""

from datetime import date
from pathlib import Path

import pytest

from adapters.contract_files import check, check_file

TODAY = date(2026, 11, 30)
NAME = "bad.files.create"

GOOD = """\
contract: bad.files.create
version: 1
provider: {name: bad, api_version: "1", sources: [https://docs.bad.example], verified_on: 2026-11-30}
target: {region: {kind: label}}
input:
  type: object
  required: [name, rows]
  additionalProperties: false
  properties: {name: {type: string}, note: {type: string}, rows: {type: array}}
files:
  rows: {media: text/csv, max_bytes: 1MiB, from: input.rows}
effect: {class: external_write, resource: "job/${input.name}", summary: "Make ${input.name}"}
http:
  base: https://api.bad.example
  auth: {bearer: bad}
  hosts: {https://files.bad.example: none}
errors: {code: body.code}
create:
  before:
    - step: upload
      request: {method: POST, path: /files, file: rows}
      answers: [{is: done}]
      save: {file: body.id}
      undo: {method: DELETE, path: "/files/${steps.upload.file}"}
    - step: fill
      request: {method: POST, path: /fills, json: {file: "${steps.upload.file}"}}
      answers: [{is: done}]
      save: {fill: body.id}
  request: {method: POST, path: /jobs, headers: {Idempotency-Key: "${token}"}, json: {fill: "${steps.fill.fill}"}}
  token: {format: uuid, window: 24h}
  answers:
    - {when: {status: 202}, is: accepted}
    - {when: {status: 409}, is: in_flight}
  job: {id: body.id}
observe:
  request: {method: GET, path: "/jobs/${job.id}"}
  states:
    - {when: {body.state: running}, is: running}
    - {when: {body.state: done}, is: ended}
    - {when: {body.state: stopped}, is: cancelled}
  counts: {total: body.total, succeeded: body.good, failed: body.bad}
cancel:
  request: {method: DELETE, path: "/jobs/${job.id}"}
  answers: [{is: acknowledged}]
collect:
  outputs:
    good: {from: {request: {method: GET, path: "/jobs/${job.id}/good"}}, format: jsonl}
    bad: {from: {request: {method: GET, url: "${observed.body.bad}"}}, format: jsonl}
  items:
    submitted: {file: rows, key: item.id}
    read:
      - {output: good, key: item.id, states: [{when: {item.ok: true}, is: succeeded}, {is: failed}]}
  partial: attention
  expect: {outputs.good.records: "${counts.succeeded}"}
reconcile: none
"""


def test_the_file_that_is_made_bad_is_good(tmp_path: Path) -> None:
    assert [finding.code for finding in check(_written(tmp_path, GOOD), TODAY)] == ["no-cases"]


def _written(folder: Path, text: str) -> Path:
    path = folder / f"{NAME}.yaml"
    path.write_text(text)
    return path


# What stands there, what is put in its place, where the finding points (the first place of this text in the new file), and what it says.
BAD = [
    ("errors: {code", "erors: {code", "erors:", "erors: no such key; did you mean errors?"),
    ("window: 24h}", "windw: 24h}", "windw", "create.token.windw: no such key; did you mean window?"),
    ("version: 1\n", "version: one\n", "version: one", "version: expected an integer"),
    ("version: 1\n", 'version: "1"\n', "version: ", "version: expected an integer"),
    ("reconcile: none\n", "reconcile: {by: get}\n", "reconcile:", "reconcile: expected a list"),
    ("  answers: [{is: acknowledged}]\n", "  answers: {is: acknowledged}\n", "answers: {is: ack", "cancel.answers: expected a list"),
    ("is: in_flight", "is: inflight", "is: inflight", "create.answers.1.is: one of 'accepted'"),
    ("window: 24h", "window: 24 h", "window: 24 h", "create.token.window: a duration such as"),
    ("max_bytes: 1MiB", "max_bytes: 1MB", "max_bytes", "files.rows.max_bytes: a size such as"),
    ("verified_on: 2026-11-30", "verified_on: 30.11.2026", "verified_on", "provider.verified_on: a date such as"),
    ("{class: external_write, ", "{", "effect:", "effect.class: this key, which must be there"),
    ('method: DELETE, path: "/jobs', 'method: REMOVE, path: "/jobs', "method: REMOVE", "cancel.request.method: one of"),
    # expressions and templates
    ("{code: body.code}", "{code: body..code}", "code: body..", "errors.code.0: a JMESPath expression"),
    ("body.state: done}", '"body.state[": done}', '"body.state[', "observe.states.1.when.body.state[: a JMESPath expression"),
    ("{fill: body.id}", "{fill: nonsense(body.id)}", "fill: nonsense", "create.before.1.save.fill.0: a JMESPath expression"),
    ('path: "/jobs/${job.id}/good"', 'path: "/jobs/${job.id/good"', 'path: "/jobs/${job.id/good', "closed hole"),
    ('"${observed.body.bad}"', '"${observed.body[bad}"', "url:", "collect.outputs.bad.from.request.url"),
    ("body.good", "'body.good", "'body.good", "YAML"),
    ("{is: failed}", "{when: {item.ok: {pattern: '('}}, is: failed}", "pattern:", "RE2"),
    ("{status: 409}", "{status: {min: 400, pattern: x}}", "status: {min", "exactly one"),
    ("{fill: body.id}", "{fill: 'multiply(body.id, `3`)'}", "fill: 'mul", "(Unknown function: multiply; there is no arithmetic)"),
    ("{fill: body.id}", "{fill: 'body.id * body.n'}", "fill: 'body", "; there is no arithmetic)"),
    ("{fill: body.id}", "{fill: body.file-id}", "fill: body", 'a name with - stands in double quotes: "file-id"'),
    ("{fill: body.id}", "{fill: headers.X-Fill}", "fill: headers", "header names are lower case with _: headers.x_fill"),
    ("{fill: body.id}", '{fill: "${body.id}"}', "fill: ", "an expression stands without ${}: body.id)"),
    ("{fill: body.id}", '{fill: "a-${body.id}"}', "fill: ", "an expression stands without ${})"),
    ("{fill: body.id}", "{fill: lenght(body.id)}", "fill: lenght", "Unknown function: lenght; did you mean length?"),
    ("job: {id: body.id}", "job: {id: headers.Location}", "id: headers", "create.job.id.0: headers.location, not Location: header names"),
    ('url: "${observed.body.bad}"', 'url: "${observed.headers.Bad_Url}"', "url:", "observed.headers.bad_url, not Bad_Url"),
    # every kind of template says where it stands
    *[
        (there, put.replace("HOLE", "${multiply(input.rows)}"), where, f"{key}: a hole with a JMESPath expression (Unknown function")
        for there, put, where, key in (
            ('summary: "Make ${input.name}"', 'summary: x, cost: {minor: "HOLE", currency: EUR}', "minor:", "effect.cost.minor"),
            ('summary: "Make ${input.name}"', 'summary: x, amount: {minor: 1, currency: "HOLE"}', "currency:", "effect.amount.currency"),
            ('summary: "Make ${input.name}"', 'summary: "HOLE"', "summary:", "effect.summary"),
            ('summary: "Make ${input.name}"', 'summary: x, fields: {a: {b: "HOLE"}}', "b: ", "effect.fields.a.b"),
            ("base: https://api.bad.example", 'base: "https://HOLE"', "base:", "http.base"),
            ("auth: {bearer: bad}", 'auth: {headers: {X-Key: "HOLE"}}', "X-Key", "http.auth.headers.X-Key"),
            ("json: {fill: ", 'form: {a: ["HOLE"]}} #', '"${multiply', "create.request.form.a.0"),
            ("json: {fill: ", 'form: "HOLE"} #', "form:", "create.request.form"),
            ("json: {fill: ", 'multipart: {a: "HOLE"}} #', 'a: "$', "create.request.multipart.a"),
            ("{status: 202}", '{body.a: {min: "HOLE"}}', "body.a", "create.answers.0.when.body.a"),
            ('good"}}, format: jsonl', 'good"}}, good_for: "HOLE", format: jsonl', "good_for", "collect.outputs.good.good_for"),
            ('good"}}, format: jsonl', 'good"}}, verify: {bytes: "HOLE"}, format: jsonl', 'bytes: "$', "collect.outputs.good.verify.bytes"),
        )
    ],
    # texts where a value of the answer was meant
    (
        'good"}}, format: jsonl',
        'good"}}, verify: {records: observed.body.good}, format: jsonl',
        "records: obs",
        'verify.records: a number, or a template that gives it; did you mean "${observed.body.good}"?',
    ),
    ('good"}}, format: jsonl', 'good"}}, verify: {sha256: abc/d}, format: jsonl', "sha256", "a SHA-256, or a template that gives it"),
    ('good"}}, format: jsonl', 'good"}}, verify: {bytes: -1}, format: jsonl', "bytes: -1", "verify.bytes: a number, or a template"),
    ("auth: {bearer: bad}", "auth: bad", "auth:", "http.auth: none, {bearer: NAME}, {basic: NAME}, {headers:"),
    ("auth: {bearer: bad}", "auth: {header: bad}", "header:", "did you mean headers?; expected none, {bearer: NAME}"),
    ("json: {fill: ", 'form: "x${input}"} #', "form:", "create.request.form: a map of fields, or one hole that gives it"),
    # roots and their members
    ("Make ${input.name}", "Make ${job.id}", "summary", "effect.summary: job is not known here"),
    ("Make ${input.name}", "Make ${input.nmae}", "summary", "effect.summary: the input schema has no input.nmae"),
    ("Make ${input.name}", "Make ${input.note}", "summary", "effect.summary: a fallback for the optional ${input.note}"),
    ("${job.id}/good", "${job.url}/good", 'path: "/jobs/${job.url', "job has no url; it has id"),
    ("${counts.succeeded}", "${counts.lost}", "outputs.good.records:", "counts has no lost"),
    ("outputs.good.records", "outputs.fine.records", "outputs.fine", "outputs has no fine; it has bad, good"),
    ("outputs.good.records", "outputs.good.rows", "outputs.good.rows", "outputs.good has no rows"),
    # impossible together
    (
        "path: /files, file: rows}",
        "path: /files, url: /x, file: rows}",
        "request: {method: POST, path: /files",
        "exactly one of path and url",
    ),
    ("path: /files, file: rows}", "path: /files, file: rows, text: x}", "request: {method: POST, path: /files", "at most one body"),
    ("path: /files, file: rows}", "path: /files, file: lines}", "file: lines", "files"),
    ("auth: {bearer: bad}", "auth: {bearer: bad, basic: bad}", "auth:", "one of bearer, basic"),
    ("auth: {bearer: bad}", "auth: {sigv4: bad}", "auth:", "sigv4, service and region together"),
    ("  token: {format: uuid, window: 24h}\n", "  token: none\n", "Idempotency-Key", "no ${token} where create.token is none"),
    ('Idempotency-Key: "${token}"', "X-Fixed: x", "token: {format", "${token} somewhere"),
    ("  partial: attention\n", "", "collect:", "partial"),
    ("  job: {id: body.id}\n", "", "create:", "a job with an id"),
    ("    - {when: {status: 202}, is: accepted}\n", "    - {is: accepted}\n", "{when: {status: 409}", "an entry that can be reached"),
    ("output: good, key", "output: fine, key", "output: fine", "output"),
    ("text/csv, max", "image/png, max", "from: input.rows", "from"),
    ("observe:\n  request:", "observe: none\nobserved:\n  request:", "observed:", "no such key; did you mean observe?"),
    # steps in a circle: a step that uses a later one, or itself
    (
        "path: /files, file: rows}",
        'path: "/files/${steps.fill.fill}", file: rows}',
        'path: "/files/${steps.fill',
        "a step that is done before this; fill is not",
    ),
    (
        "path: /fills, json",
        'path: "/fills/${steps.fill.fill}", json',
        'path: "/fills/${steps.fill',
        "a step that is done before this; fill is not",
    ),
    ("- step: fill", "- step: upload", "step: upload\n      request: {method: POST, path: /fills", "upload"),
    # bytes and YAML
    ("version: 1\n", "version: 1\nversion: 2\n", "version: 2", "the key version once"),
    ("version: 1\n", "version: !!int 1\n", "!!int", "a value without a tag"),
    ("reconcile: none\n", "reconcile: none\n---\na: b\n", "---", "one document"),
    ("version: 1\n", "version: ?\n", "?", "YAML (mapping keys are not allowed here); quote it, if it is meant as text"),
    ("{status: 202}", "{status: ${x}}", "{x}", "quote it, if it is meant as text"),
    ("sources: [https://docs.bad.example]", "sources: [https://docs.bad.example", "}\ntarget:", "YAML"),
]


@pytest.mark.parametrize(("there", "put", "where", "said"), BAD, ids=[f"{put.strip()[:40]}" or there.strip() for there, put, _, _ in BAD])
def test_a_bad_file_is_refused_at_the_place_of_its_fault(tmp_path: Path, there: str, put: str, where: str, said: str) -> None:
    assert GOOD.count(there) >= 1
    text = GOOD.replace(there, put, 1)
    path = _written(tmp_path, text)
    findings = [finding for finding in check(path, TODAY) if finding.code not in ("no-cases",)]
    before = text[: text.index(where)]
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert any(said in str(finding) for finding in findings), [str(finding) for finding in findings]
    found = next(finding for finding in findings if said in str(finding))
    assert (found.line, found.column) == place, str(found)
    assert found.file == str(path)


@pytest.mark.parametrize(("put", "near"), [("is: runing", "running"), ("is: throtled", "throttled"), ("is: nothing_like_it", None)])
def test_a_wrong_word_is_one_finding_with_one_list(tmp_path: Path, put: str, near: str | None) -> None:
    path = _written(tmp_path, GOOD.replace("is: running", put))
    (said,) = [finding.expected for finding in check(path, TODAY)]
    assert said.startswith("one of 'waiting', 'running', ")
    assert "'throttled'" in said
    assert said.endswith(f"'unsure'; did you mean {near}?" if near else "'unsure'")


def test_a_name_that_the_input_does_not_have_is_one_finding(tmp_path: Path) -> None:
    path = _written(tmp_path, GOOD.replace("Make ${input.name}", "Make ${input.nmae}"))
    assert [finding.expected for finding in check(path, TODAY)] == ["the input schema has no input.nmae"]


CASES = """\
contract: bad.files.create
example:
  input: {name: a, rows: [{id: 1}]}
  target: {region: eu}
  job: {id: job-1}
  steps: {upload: {file: f-1}, fill: {fill: x-1}}
cases:
  - name: taken
    call: create
    sent: {method: POST, json: {fill: x-1}}
    answer: {status: 202, json: {id: job-1}}
    means: accepted
    job: {id: job-1}
  - name: runs
    call: observe
    answer: {status: 200, json: {state: running}}
    means: running
  - name: ends
    call: observe
    answer: {status: 200, json: {state: done, total: 1, good: 1, bad: 0, bad_url: x}}
    means: ended
stories:
  - name: all the way
    exchanges: [taken, runs, ends]
    ends: succeeded
"""

BAD_CASES = [
    ("means: running", "means: succeeded", "means: succeeded", "cases.1.means: running, which is what the contract reads this answer as"),
    ("means: running\n", "means: running\n    verdict: failed\n", "verdict: failed", "verdict: nothing, which is what the contract reads"),
    ("call: observe", "call: watch", "call: watch", "cases.1.call: a call of this contract, one of create"),
    ("means: accepted", "meens: accepted", "meens", "no such key; did you mean means?"),
    ("json: {id: job-1}}", "json: {identity: job-1}}", "means: accepted", "unsure"),
    ("json: {fill: x-1}}\n    answer", "json: {fill: x-2}}\n    answer", "json: {fill: x-2", 'what the contract sends: {"fill": "x-1"}'),
    ("    job: {id: job-1}\n  - name", "    job: {id: job-2}\n  - name", "job: {id: job-2", "which is what the contract reads"),
    ("call: observe\n", "call: observe\n    given: {page: {nxt: c}}\n", "nxt", "cases.1.given.page.nxt: no such key; did you mean next?"),
    ("call: observe\n", "call: observe\n    given: {page: {index: 1, number: 1}}\n", "number: 1", "one more than index"),
    ("name: runs", "name: taken", "name: taken\n    call: observe", "a name that no other has"),
    ("[taken, runs, ends]", "[taken, rans, ends]", "rans", "the name of a case"),
    ("ends: succeeded", "ends: done", "ends: done", "a state, one of proposed"),
    ("target: {region: eu}", "target: {}", "example:", "needs a target with region"),
    ("{name: a, rows", "{nam: a, rows", "input: {nam", "an input that the contract takes"),
    ("contract: bad.files.create", "contract: other.files.create", "contract:", "the contract beside which these cases stand"),
    ("status: 202, json", "status: 99, json", "status: 99", "greater than or equal to 100"),
    ("json: {id: job-1}}", 'json: {id: "${lost.id}"}}', "answer: {status: 202", "${lost.id} has no value in an answer"),
    (
        "json: {state: running}}",
        "json: {state: running}, text: x}",
        "answer: {status: 200, json: {state: running}, text",
        "at most one body",
    ),
]


def test_cases_are_run_and_what_none_reaches_is_said(tmp_path: Path) -> None:
    path = _written(tmp_path, GOOD)
    (tmp_path / f"{NAME}.cases.yaml").write_text(CASES)
    checked = check_file(path, TODAY)
    assert (checked.cases, checked.stories) == (3, 1)
    assert {finding.code for finding in checked.findings} == {"entry-without-case"}
    lines = [GOOD.splitlines()[finding.line - 1] for finding in checked.findings if finding.key.startswith("observe")]
    assert lines == ["    - {when: {body.state: stopped}, is: cancelled}"]
    assert all(finding.remedy for finding in checked.findings)


@pytest.mark.parametrize(("there", "put", "where", "said"), BAD_CASES, ids=[put.strip()[:40] for _, put, _, _ in BAD_CASES])
def test_a_bad_case_is_refused_at_the_place_of_its_fault(tmp_path: Path, there: str, put: str, where: str, said: str) -> None:
    text = CASES.replace(there, put, 1)
    path = _written(tmp_path, GOOD)
    beside = tmp_path / f"{NAME}.cases.yaml"
    beside.write_text(text)
    findings = [finding for finding in check(path, TODAY) if finding.file == str(beside)]
    before = text[: text.index(where)]
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert any(said in str(finding) for finding in findings), [str(finding) for finding in findings]
    found = next(finding for finding in findings if said in str(finding))
    assert (found.line, found.column) == place, str(found)
