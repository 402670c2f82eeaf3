"""Files that are called regular, or nearly, and are none that anybody could read."""

import os
import socket
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from adapters import contract_files
from adapters.credentials import Credentials
from adapters.drafting import source
from adapters.file_intake import opened
from adapters.regular_files import first_bytes
from domain.errors import BadInput, CredentialError, NotFound, SakshiError
from tests.adapters.test_regular_files import READERS


def _unread(path: Path) -> None:
    with opened("rows", path) as file:
        file.read(1)


ALL: dict[str, tuple[Callable[[Path], object], type[SakshiError]]] = {**READERS, "a big input": (_unread, BadInput)}


@pytest.mark.parametrize("reader", ALL)
def test_a_socket_is_no_regular_file_and_no_device_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str) -> None:
    monkeypatch.chdir(tmp_path)  # its whole path may be longer than that of a socket may be
    read, error = ALL[reader]
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind("named")
        with pytest.raises(error) as refused:
            read(tmp_path / "named")
    assert "regular file" in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.parametrize("reader", ALL)
def test_a_file_that_would_be_waited_for_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str) -> None:
    """As `/proc/kmsg`, which calls itself regular and has nothing to read until the kernel says something."""
    path = tmp_path / "named"
    os.mkfifo(path)
    writing = os.open(path, os.O_RDWR)
    monkeypatch.setattr(stat, "S_ISREG", lambda _mode: True)
    read, error = ALL[reader]
    try:
        with pytest.raises(error):
            read(path)
    finally:
        os.close(writing)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file of Linux")
def test_a_file_that_can_be_opened_and_not_read_is_refused_with_the_systems_reason() -> None:
    path = Path("/proc/self/mem")
    with pytest.raises(NotFound, match="cannot read /proc/self/mem: Input/output error"):
        contract_files.parse(path)
    with pytest.raises(BadInput, match="/proc/self/mem can't be read: Input/output error"):
        source.read_openapi(path)
    with pytest.raises(BadInput, match="the file rows can't be read: Input/output error"):
        _unread(path)


def test_a_credential_that_became_unreadable_is_refused_without_what_it_held(tmp_path: Path) -> None:
    (tmp_path / "named").symlink_to("/proc/self/mem")
    with pytest.raises(CredentialError) as refused:
        READERS["a credential"][0](tmp_path / "named")
    assert "readable regular file" in f"{refused.value.message} {refused.value.hint}"
    assert Credentials({}, tmp_path) is not None


def test_what_is_deleted_while_it_is_read_is_read_to_its_end_and_what_grows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"a" * 10)
    with opened("rows", path) as file:
        path.unlink()
        assert (file.read(100), file.read(100)) == (b"a" * 10, b"")
    path.write_bytes(b"a" * 10)
    with opened("rows", path) as file, path.open("ab") as more:
        assert file.read(100) == b"a" * 10
        more.write(b"b")
        more.flush()
        assert file.read(100) == b"b"
        with pytest.raises(BadInput, match="changed while it was read"):
            file.read(100)


def test_a_file_that_lies_about_its_size_is_read_as_far_as_is_asked() -> None:
    if Path("/proc/self/status").exists():
        assert first_bytes(Path("/proc/self/status"), 5) == b"Name:"
