"""The limits and the origins of the calls that a contract makes: what they may do and cost, whoever makes them."""

from collections.abc import Mapping
from functools import partial

from pydantic import JsonValue

from domain.contract import Contract
from domain.exchange import AuthUse, CallPolicy
from domain.language.connection import Auth
from domain.quota import spent_until
from domain.rendering import origins


def call_policy(
    contract: Contract,
    target: Mapping[str, JsonValue],
    tenant: str,
    *,
    max_bytes: int | None = None,
    send_by: float | None = None,
    total_s: float | None = None,
) -> CallPolicy:
    """What one call may do. Unset: as many bytes as an answer may have, and as many seconds as the contract gives a request."""
    http = contract.http
    return CallPolicy(
        origins=tuple((origin, _use(auth)) for origin, auth in origins(contract, target)),
        tenant=tenant,
        connect_s=http.timeouts.connect.total_seconds(),
        read_s=http.timeouts.read.total_seconds(),
        write_s=http.timeouts.write.total_seconds(),
        total_s=http.timeouts.total.total_seconds() if total_s is None else total_s,
        max_bytes=http.limits.response_bytes if max_bytes is None else max_bytes,
        parallel=http.limits.parallel,
        per_second=http.limits.requests_per_second,
        send_by=send_by,
        spent=None if http.quota is None else partial(spent_until, http.quota),
    )


def _use(auth: Auth) -> AuthUse:
    """A contract's authentication as the executor takes it."""
    return AuthUse(auth.kind, auth.credential, auth.templates, service=auth.service or "", region=auth.region or "")
