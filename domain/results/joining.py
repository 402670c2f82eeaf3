"""Pages of bytes become one object: CSV with its header row once, lines that end, everything else as it came.

* One pass and bounded memory: of a page nothing is held but its header row, and only until that is whole.
* A later page of CSV begins with the header of the first. One that begins otherwise has other columns, or none that are named: joined it
  would be a table that no page showed, so it is a problem.
* A byte order mark within an object is none: of later pages it is left out.
"""

from typing import Final

from domain.results.counting import Format

MAX_HEADER: Final = 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"


class Joiner:
    """For each page: `begin`, its bytes through `feed`, then `end`. What these return is the object, in order."""

    def __init__(self, format: Format) -> None:
        self._format: Format = format
        self._page = 0
        self._last = b"\n"
        self._joined = 0
        self._head: bytearray | None = None
        self._quoted = False
        self._header: bytes | None = None
        self.problem: str | None = None

    def begin(self) -> None:
        """A page begins."""
        self._page += 1
        # The beginning is held until it is known: a mark of byte order, and of CSV the header row.
        self._head = bytearray() if self._format == "csv" or (self._format != "binary" and self._page > 1) else None
        self._quoted = False

    def feed(self, chunk: bytes) -> bytes:
        """The next bytes of the page."""
        if self._head is None:
            return self._passed(chunk)
        before = len(self._head)
        self._head += chunk
        end = self._end_of_head(before)
        if end is None:
            if len(self._head) > MAX_HEADER:
                self._fail(f"the header row of page {self._page} is longer than {MAX_HEADER} bytes")
            return b""
        return self._begun(end)

    def end(self) -> bytes:
        """The page is over."""
        return b"" if self._head is None else self._begun(len(self._head))

    def _end_of_head(self, start: int) -> int | None:
        """Where the held beginning ends, once that is known."""
        head = self._head or bytearray()
        if self._format != "csv":
            return 0 if len(head) >= len(_BOM) else None
        for at in range(start, len(head)):
            if head[at] == 0x22:
                self._quoted = not self._quoted
            elif head[at] == 0x0A and not self._quoted:
                return at + 1
        return None

    def _begun(self, end: int) -> bytes:
        held, self._head = bytes(self._head or b""), None
        marked = len(_BOM) if held.startswith(_BOM) else 0
        if self._format == "csv":
            row = held[marked:end].rstrip(b"\r\n")
            if self._header is None:
                self._header = row if row else None
            elif row:
                if row != self._header:
                    self._fail(f"page {self._page} has another header row than the first")
                return self._passed(held[end:])
        return self._passed(held if self._page == 1 else held[marked:])

    def _passed(self, chunk: bytes) -> bytes:
        if not chunk:
            return b""
        broken = self._format in {"csv", "jsonl"} and self._last != b"\n" and self._joined != self._page
        self._last, self._joined = chunk[-1:], self._page
        return b"\n" + chunk if broken else chunk

    def _fail(self, problem: str) -> None:
        self.problem = self.problem or problem
        self._head = None
