"""`python -m simulator`: listens on loopback, prints `{"url": ...}` as one line when it does, ends on SIGTERM or Ctrl-C."""

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from simulator.asking import Pace
from simulator.books import Books
from simulator.provider import Settings
from simulator.serve import serve


def main() -> int:
    """Reads the options and serves."""
    options = _options().parse_args()
    settings = Settings(
        pace=Pace(options.polls, options.seconds),
        cancel_polls=options.cancel_polls,
        cancel_seconds=options.cancel_seconds,
        retry_after=options.retry_after,
        bearer=options.require_bearer,
    )
    try:
        books = asyncio.run(_until_told(options.state, options.port, settings))
    except OSError as problem:
        print(f"simulator: cannot listen on port {options.port}: {problem.strerror}", file=sys.stderr)
        return 1
    if options.books is not None:
        options.books.write_text(json.dumps(books.to_json(), indent=1) + "\n", encoding="utf-8")
    return 0


async def _until_told(state: Path | None, port: int, settings: Settings) -> Books:
    stop = asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, stop.set)
    return await serve(state, port, settings, stop, lambda url: print(json.dumps({"url": url}), flush=True))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulator", description="A provider of slow reports, honest unless told otherwise.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--state", type=Path, help="SQLite file in which jobs, tokens, books and script outlive the process")
    parser.add_argument("--books", type=Path, help="write the books to this file, as JSON, at the end")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a job takes")
    parser.add_argument("--polls", type=int, help="how many readings a job takes, instead of seconds")
    parser.add_argument("--cancel-seconds", type=float, default=1.0, help="how long a cancel takes")
    parser.add_argument("--cancel-polls", type=int, default=1, help="how many readings a cancel takes, where a job is measured in readings")
    parser.add_argument("--retry-after", help="put this Retry-After on the answer to a create")
    parser.add_argument(
        "--require-bearer",
        type=_credential,
        metavar="VALUE",
        help="refuse calls without this bearer credential; @FILE reads it from a file",
    )
    return parser


def _credential(text: str) -> str:
    return Path(text[1:]).read_text(encoding="utf-8").removesuffix("\n") if text.startswith("@") else text


if __name__ == "__main__":
    sys.exit(main())
