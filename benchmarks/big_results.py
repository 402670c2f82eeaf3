"""A provider of large results, in a process of its own: `python -m benchmarks.big_results` says its address and serves until it is ended.

It speaks as much of the simulator's interface as `sim.reports.create` needs. A job is finished when it is first asked for. Its account
says what its result is, as `FORM-BYTES-ANYTHING`: the same block of rows over and over, sent as it is made, so that no result is ever
held here. Size, SHA-256 and number of records are told truly, so that all of them are checked. Loopback only.
"""

import hashlib
import json
import sys
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HEAD = b"date,account,amount,currency,text,reference\n"
ROWS = {
    "csv": b"2026-01-%02d,acct-7,%d.25,EUR,a report of some length,%d\n",
    "quoted": b'2026-01-%02d,acct-7,%d.25,EUR,"a report, of some length",%d\n',
    "jsonl": b'{"date":"2026-01-%02d","account":"acct-7","amount":%d.25,"currency":"EUR","text":"a report","reference":%d}\n',
    "binary": b"2026-01-%02d,acct-7,%d.25,EUR,a report of some length,%d\n",
}
MEDIA = {"csv": "text/csv", "quoted": "text/csv", "jsonl": "application/x-ndjson", "binary": "application/octet-stream"}
IN_A_BLOCK = 20_000


@cache
def block(form: str) -> bytes:
    """The rows that are sent over and over."""
    return b"".join(ROWS[form] % (number % 28 + 1, number, number * 7919) for number in range(IN_A_BLOCK))


def shape(account: str) -> tuple[str, bytes, int]:
    """Form, header and number of blocks of an account's result, which is at least as large as was asked for."""
    form, size = account.split("-")[:2]
    return form, HEAD if MEDIA[form] == "text/csv" else b"", -(-int(size) // len(block(form)))


@cache
def facts(account: str) -> dict[str, object]:
    """What a status says of the result."""
    form, head, blocks = shape(account)
    digest = hashlib.sha256(head)
    for _ in range(blocks):
        digest.update(block(form))
    records = None if form == "binary" else blocks * IN_A_BLOCK
    return {
        "checksum": digest.hexdigest(), "size": len(head) + blocks * len(block(form)), "rows": records, "content_type": MEDIA[form],
        "progress": {"completed": 1, "total": 1},
    }  # fmt: skip


class Answers(BaseHTTPRequestHandler):
    """Create, status and result."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """A job: its id is the account that it is for."""
        account = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["account"]
        facts(account)
        self._say(202, {"job_id": account, "state": "running"})

    def do_GET(self) -> None:
        """A status, or a result."""
        account = self.path.rpartition("/")[2]
        if not self.path.startswith("/v1/results/"):
            url = f"http://{self.headers['Host']}/v1/results/{account}"
            return self._say(200, {"job_id": account, "state": "succeeded", "result_url": url, **facts(account)})
        form, head, blocks = shape(account)
        self.send_response(200)
        self.send_header("Content-Type", MEDIA[form])
        self.send_header("Content-Length", str(facts(account)["size"]))
        self.end_headers()
        self.wfile.write(head)
        for _ in range(blocks):
            self.wfile.write(block(form))

    def _say(self, status: int, value: dict[str, object]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


def main() -> None:
    """Serve."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main()
