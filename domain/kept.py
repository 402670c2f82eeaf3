"""An answer kept whole in `payloads`, because later calls are rendered from it."""

import base64
import json
from typing import Final, Literal, cast

from domain.evidence import Json
from domain.exchange import Answer
from domain.fingerprint import canonical

_NOT_KEPT: Final = frozenset({"set-cookie", "authorization", "proxy-authorization"})
Call = Literal["create", "observe"]


def kept_bytes(call: str, answer: Answer) -> bytes:
    """The payload."""
    return canonical(
        {
            "call": call,
            "status": answer.status,
            "headers": [[name, value.encode("utf-8", "replace").decode()] for name, value in answer.headers if name not in _NOT_KEPT],
            "body": base64.b64encode(answer.body).decode("ascii"),
        }
    )


def kept_answer(payload: bytes) -> tuple[Call, Answer]:
    """The reverse: which call's answer it was, and the answer."""
    kept = cast("dict[str, Json]", json.loads(payload))
    headers = tuple((str(name), str(value)) for name, value in cast("list[tuple[str, str]]", kept["headers"]))
    answer = Answer(status=cast("int", kept["status"]), headers=headers, body=base64.b64decode(str(kept["body"])))
    return cast("Call", kept["call"]), answer
