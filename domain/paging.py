"""How one page leads to the next: shared by the steps of calls, by lookups and by collecting.

* How pages lead on is the provider's word. That they end is ours: `pages.limit`, and a page that leads back to one that was read.
* A cursor, an address or a count that is not one cannot be followed: the page then decides nothing, and is never the last one.
* The address of a next page is data, never a template: it may be relative to the page before, and stands under the same rules of
  origins as every address that is called.
"""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin

from pydantic import JsonValue

from domain.contract import Contract
from domain.errors import AddressError
from domain.exchange import Request
from domain.language.calls import Pages
from domain.language.calls import Request as RequestModel
from domain.language.expressions import Scope, first_value
from domain.language.matching import holds
from domain.origins import check_address
from domain.rendering import MAX_URL, render

MAX_CURSOR: Final = 8_192
"""Characters of a cursor as JSON. A longer one cannot be followed."""
_MARK: Final = 8
"""Bytes of a digest that tell ten thousand of one walk apart."""


@dataclass(frozen=True, slots=True)
class Following:
    """What leads on from one page: `next` for `page.next`, or the whole address; `more`: there is a next page."""

    next: JsonValue = None
    next_url: str | None = None
    more: bool = False


def page_root(index: int, before: Following | None = None) -> dict[str, JsonValue]:
    """The root `page` of the page number `index` (from 0), which `before` led to."""
    return {"next": before.next if before else None, "index": index, "number": index + 1}


def following(pages: Pages, scope: Scope) -> Following | None:
    """What leads on from the page whose answer is in `scope`; None if that cannot be read. Raises TooMuch."""
    more = pages.more is None or holds(pages.more, scope)
    if pages.next:
        cursor = _some(first_value(pages.next, scope))
        if len(json.dumps(cursor)) > MAX_CURSOR:
            return None
        return Following(next=cursor, more=more and cursor is not None)
    if pages.next_url:
        url = _some(first_value(pages.next_url, scope))
        if not isinstance(url, str | None) or len(url or "") > MAX_URL:
            return None
        return Following(next_url=url, more=more and url is not None)
    if pages.count:
        count = first_value(pages.count, scope)
        if isinstance(count, bool) or not isinstance(count, int | None):
            return None
        return Following(more=more and _index(scope) + 1 < (1 if count is None else count))
    return Following(more=pages.more is not None and more)


def _some(value: JsonValue) -> JsonValue:
    """An empty text is no cursor and no address: many providers end their pages with one."""
    return None if value == "" else value


def _index(scope: Scope) -> int:
    match scope.page:
        case {"index": int(index)}:
            return index
        case _:
            return 0


@dataclass
class Trail:
    """The cursors and addresses that led from page to page. Counted pages have none, and end by their count or limit.

    Whoever goes on where another stopped has to know them too: `kept` is all of them as text, `resumed` the reverse.
    """

    seen: set[bytes] = field(default_factory=set[bytes])

    @property
    def kept(self) -> str:
        """All of them."""
        return base64.b64encode(b"".join(self.seen)).decode("ascii")

    @classmethod
    def resumed(cls, kept: str) -> "Trail":
        """The trail that was kept."""
        marks = base64.b64decode(kept)
        return cls({marks[at : at + _MARK] for at in range(0, len(marks), _MARK)})

    def leads_back(self, step: Following) -> bool:
        """Whether `step` leads to a page that was read already. It is remembered."""
        if step.next is None and step.next_url is None:
            return False
        written = json.dumps([step.next, step.next_url], sort_keys=True).encode()
        mark = hashlib.sha256(written).digest()[:_MARK]
        back = mark in self.seen
        self.seen.add(mark)
        return back


def next_page(contract: Contract, request: RequestModel, scope: Scope, url: str, base: str, *, accept: str = "application/json") -> Request:
    """The request for a page whose whole address the provider gave; it may be relative to `base`, the address of the page before.

    Raises AddressError, RenderError.
    """
    check_address(url)
    if url.startswith("//"):
        raise AddressError("an address that begins with //")
    literal = urljoin(base, url).replace("${", "$${")
    return render(contract, request.model_copy(update={"path": None, "url": literal, "query": {}}), scope, accept=accept)
