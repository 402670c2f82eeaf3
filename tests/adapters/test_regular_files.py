"""Whatever reads a file that a person named: only a regular file, of a bounded size, and nobody is waited for."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters import contract_files, credential_records
from adapters.addresses import parse_origin
from adapters.credentials import Credentials
from adapters.drafting import source
from adapters.file_intake import opened
from adapters.regular_files import first_bytes
from domain.errors import BadInput, CredentialError, NotFound, SakshiError

ORIGIN = parse_origin("https://api.acme.test")


def _taken_in(path: Path) -> None:
    with opened("rows", path):
        raise AssertionError("it was opened")


READERS: dict[str, tuple[Callable[[Path], object], type[SakshiError]]] = {
    "a contract": (contract_files.parse, NotFound),
    "an OpenAPI document": (source.read_openapi, BadInput),
    "a big input": (_taken_in, BadInput),
    "a credential": (lambda path: Credentials({}, path.parent).read(path.name, origin=ORIGIN, tenant="blue"), CredentialError),
}
OTHERS: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("other", OTHERS)
def test_what_is_no_regular_file_is_refused_in_words_that_name_it(tmp_path: Path, reader: str, other: str) -> None:
    read, error = READERS[reader]
    path = tmp_path / "named"
    OTHERS[other](path)
    with pytest.raises(error) as refused:
        read(path)
    assert "named" in refused.value.message
    if other in {"a pipe", "a folder", "a device"}:
        assert "regular file" in f"{refused.value.message} {refused.value.hint}"
    assert refused.value.exit_code == (1 if error is CredentialError else 2)


@pytest.mark.parametrize(
    ("read", "most"),
    [
        (contract_files.parse, contract_files.MAX_BYTES),
        (source.read_openapi, source.MAX_BYTES),
        (READERS["a credential"][0], credential_records.MAX_RECORD),
    ],
)
def test_of_a_file_without_end_no_more_is_read_than_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], object], most: int
) -> None:
    path = tmp_path / "named"
    with path.open("wb") as file:
        file.truncate(2**40)
    asked: list[int] = []

    def watched(path: Path, most: int) -> bytes:
        asked.append(most)
        return first_bytes(path, most)

    for module in ("contract_files", "credentials", "drafting.source"):
        monkeypatch.setattr(f"adapters.{module}.first_bytes", watched)
    with pytest.raises(SakshiError):
        read(path)
    assert asked == [most + 1]


def test_a_link_to_a_regular_file_is_read_as_far_as_is_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abcdef")
    (tmp_path / "link").symlink_to("file")
    assert [first_bytes(tmp_path / "link", most) for most in (0, 4, 100)] == [b"", b"abcd", b"abcdef"]


def test_a_path_that_none_can_have_is_an_error_as_any_other() -> None:
    with pytest.raises(OSError, match="not a path") as refused:
        first_bytes(Path("a\0b"), 1)
    assert refused.value.strerror == "not a path"
