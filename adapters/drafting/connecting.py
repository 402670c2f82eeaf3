"""Where a contract's requests go, and with which credential: read out of `servers` and `security`."""

import re
from typing import Final

from adapters.drafting.openapi import Node, OpenApi, Operation, as_node, as_nodes
from adapters.drafting.text import Said, Tree, hole, one_line
from domain.errors import AddressError
from domain.origins import origin_of

VARIABLE: Final = re.compile(r"\{([^{}]{1,100})\}")
_URL: Final = re.compile(r"(https?)://([^/?#]+)(/[^?#]*)?")
_WHOLE_HOST: Final = re.compile(r"\{[^{}]+\}(:([0-9]+|\{[^{}]+\}))?")
_USERINFO: Final = re.compile(r"(?<=//)[^/]*@")
HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_ANY: Final = "[A-Za-z0-9._~-]+"
_SERVER: Final[dict[str, Tree]] = {"server": {"kind": "origin", "about": "address of the server"}}
WAYS: Final = "none, {bearer: NAME}, {basic: NAME}, {headers: {Name: ...}}, ..."


def base_of(create: Operation) -> tuple[dict[str, Tree], Tree]:
    """What differs between installations, and the address below which every path stands."""
    address = str(create.server.get("url") or "").strip().rstrip("/")
    found = _URL.fullmatch(address)
    if found is None:
        return _relative(address)
    scheme, host, path = found[1], found[2], found[3] or ""
    variables = as_node(create.server.get("variables"))
    in_path = {_name(name): _text_target(name, variables) for name in VARIABLE.findall(path)}
    if _WHOLE_HOST.fullmatch(host):
        return _checked(_SERVER | in_path, "${target.server}" + _filled(path), [f"the document: {_shown(address)}"])
    in_host: dict[str, Tree] = {_name(name): {"kind": "label", "about": _about(name, variables)} for name in VARIABLE.findall(host)}
    remarks = ["http is taken on loopback, and where an operator allows it"] if scheme == "http" else []
    remarks += [f"the first of {create.servers} servers that the document names"] if create.servers > 1 else []
    return _checked(in_host | in_path, f"{scheme}://{_filled(host)}{_filled(path)}", remarks)


def _relative(address: str) -> tuple[dict[str, Tree], Tree]:
    if not address or re.fullmatch(r"/(?!/[^/]*@)[^?#]*", address):
        said = "the document names its server by a path alone" if address else "the document names no server"
        return _checked(dict(_SERVER), "${target.server}" + address, [said])
    return {}, hole(f"the address below which every path stands; the document: {_shown(address)}")


def _checked(target: dict[str, Tree], base: str, remarks: list[str]) -> tuple[dict[str, Tree], Tree]:
    """A base that is an address whatever the targets are, or a hole."""
    sample = re.sub(r"\$\{target\.[a-z0-9_]+\}", "x", base.replace("${target.server}", "https://x"))
    try:
        origin_of(sample)
    except AddressError:
        return {}, hole(f"the address below which every path stands; the document: {_shown(base)}")
    if re.search(r"[{}$]", sample):
        return {}, hole(f"the address below which every path stands; the document: {_shown(base)}")
    return target, Said(base, "; ".join(remarks)) if remarks else base


def _shown(address: str) -> str:
    """An address of the document without who calls it and without its query, which a person may have copied from a call of their own."""
    place, query, _ = address.partition("?")
    return one_line(_USERINFO.sub("...@", place) + ("?..." if query else ""))


def _filled(text: str) -> str:
    return VARIABLE.sub(lambda found: f"${{target.{_name(found[1])}}}", text)


def _text_target(name: str, variables: Node) -> Tree:
    listed = [str(word) for word in as_nodes(as_node(variables.get(name)).get("enum"))]
    fits = [word for word in listed if re.fullmatch(_ANY, word)]
    ours = Said(_ANY, "the document does not say what it may be")
    pattern = "|".join(map(re.escape, fits)) if fits and fits == listed else ours
    return {"kind": "text", "pattern": pattern, "about": _about(name, variables)}


def _about(name: str, variables: Node) -> str:
    variable = as_node(variables.get(name))
    said = one_line(str(variable.get("description") or name), 120)
    default = variable.get("default")
    return f"{said}, as {one_line(default, 60)}" if isinstance(default, str) and default else said


def _name(text: str) -> str:
    return "t_" * (not text[:1].isalpha()) + re.sub(r"[^a-z0-9_]", "_", text.lower())[:60]


def auth_of(api: OpenApi, create: Operation, credential: str) -> Tree:
    """How requests are authenticated, as the create asks for it."""
    schemes = api.schemes()
    asked, remarks = create.security, ["the name of the credential is yours to choose"]
    if asked is None:
        asked = tuple((name,) for name in schemes)
        remarks.append("the document does not say what this operation asks for")
    elif not any(asked):
        return Said("none", "the document asks for no credential")
    elif not all(asked):
        remarks.append("the document lets it be left out")
    known = [way for names in asked if names and (way := _way([schemes.get(name, {}) for name in names], credential))]
    if not known:
        return hole(f"{WAYS}: the document names no way that is known here")
    if len(known) > 1:
        remarks.append(f"the first of {len(known)} ways that the document names")
    kind, value, remark = known[0]
    return _said(kind, value, "; ".join([*([remark] if remark else []), *remarks]))


def _said(kind: str, value: str | tuple[str, str], remark: str) -> Tree:
    return {kind: Said(value, remark) if isinstance(value, str) else {value[0]: Said(value[1], remark)}}


def _way(schemes: list[Node], credential: str) -> tuple[str, str | tuple[str, str], str] | None:
    """The key of `auth`, its value and a remark; None for what is not known here, as two schemes at once."""
    secret = f"${{secret.{credential}}}"
    match schemes:
        case [{"type": "http", "scheme": str(kind)}] if kind.lower() in ("bearer", "basic"):
            return kind.lower(), credential, ""
        case [{"type": "apiKey", "in": "header", "name": str(name)}] if HEADER.fullmatch(name):
            return "headers", (name, secret), "if the document's text asks for a word before the key, as Bearer, add it"
        case [{"type": "apiKey", "in": "query", "name": str(name)}] if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
            return "query", (name, secret), ""
        case [{"type": "oauth2", "flows": {"clientCredentials": dict()}}]:
            return "oauth2", credential, "the credential holds the token address and the client"
        case [{"type": "oauth2"}]:
            return "bearer", credential, "OAuth 2.0 by a flow that asks a person: the credential holds a token"
        case [{"type": "openIdConnect"}]:
            return "bearer", credential, "OpenID Connect: the credential holds a token"
        case _:
            return None


def credential_of(contract: str) -> str:
    """A name for the credential: the provider's, as the contract has it."""
    return re.sub(r"[^a-z0-9_]", "_", contract.split(".")[0])[:64]
