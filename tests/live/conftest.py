"""One server and one stack for all tests of the ring; each test counts only what it had made."""

from collections.abc import Callable, Iterator

import pytest

from tests.live.passage import Passage, passage
from tests.live.prefect_server import Prefect
from tests.live.prefect_server import serving as serving_prefect
from tests.live.pygeoapi_server import Job, Server, serving
from tests.live.stack import Sakshi, running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("pygeoapi")) as made:
        yield made


@pytest.fixture(scope="session")
def prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prefect]:
    with serving_prefect(tmp_path_factory.mktemp("prefect")) as made:
        yield made


@pytest.fixture(scope="session")
def sakshi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sakshi]:
    with running(tmp_path_factory.mktemp("sakshi") / "home") as made:
        yield made


@pytest.fixture
def made(server: Server) -> Callable[[], list[Job]]:
    """The jobs that the server's own books have since the test began."""
    before = {job["identifier"] for job in server.jobs()}
    return lambda: [job for job in server.jobs() if job["identifier"] not in before]


@pytest.fixture
def way(server: Server) -> Iterator[Passage]:
    with passage(server.url) as made:
        yield made
