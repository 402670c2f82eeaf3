"""A request before it is sent: whole, and as it will be recorded.

A stored file is never held: before a request with one is recorded it is read once, piece by piece and off the loop, and is what was
stored, or nothing is sent. While it is sent it is looked at again.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace

from activities.ports import World
from domain.errors import NotFound, RenderError
from domain.evidence import RequestFacts
from domain.exchange import Request, StoredPart
from domain.fingerprint import canonical, sha256_hex
from domain.origins import shown_url


async def sealed(world: World, request: Request) -> Request:
    """The request with the digest of its whole body, each stored file in it read and found to be what was stored.

    Raises RenderError where one is lost or something else: nothing may then be sent. Raises Unreachable.
    """
    if not request.parts:
        return request
    whole = hashlib.sha256()
    for part in request.parts:
        if isinstance(part, StoredPart):
            await _read_through(world, part, whole.update)
        else:
            whole.update(part)
    if request.whole_sha256 not in {None, whole.hexdigest()}:
        raise RenderError("the body is not the one that was recorded; nothing was sent")
    return replace(request, whole_sha256=whole.hexdigest())


async def _read_through(world: World, part: StoredPart, also: Callable[[bytes], None]) -> None:
    own, size = hashlib.sha256(), 0

    def take(chunk: bytes) -> None:
        own.update(chunk)
        also(chunk)

    try:
        async for chunk in world.results.read(part.key):
            size += len(chunk)
            await asyncio.to_thread(take, chunk)
    except NotFound:
        raise RenderError(f"the file with SHA-256 {part.sha256} is no longer in the result store; nothing was sent") from None
    if (size, own.hexdigest()) != (part.size, part.sha256):
        raise RenderError(f"the stored file with SHA-256 {part.sha256} is not what was stored; nothing was sent")


def request_facts(request: Request) -> tuple[RequestFacts, bytes]:
    """What an intent says of a request that is `sealed`, and the payload that holds the whole of it."""
    payload = canonical(request.to_json())
    digest = request.body_sha256
    if digest is None:
        raise ValueError("a request with stored files is sealed before it is recorded")
    facts = RequestFacts(
        method=request.method,
        url=shown_url(request.url),
        body_sha256=digest,
        body_bytes=request.body_bytes,
        ref=sha256_hex(payload),
    )
    return facts, payload
