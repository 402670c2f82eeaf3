"""A process of the server that is executed at once, whatever is preferred. pygeoapi imports it; it is no test.

All else that the tests run ships with pygeoapi; only a process without `async-execute` is missing there.
"""

import copy

from pygeoapi.process.hello_world import PROCESS_METADATA, HelloWorldProcessor  # pyright: ignore[reportMissingImports]


class AtOnce(HelloWorldProcessor):  # pyright: ignore[reportUntypedBaseClass]
    """Hello World, as a server that offers synchronous execution alone."""

    def __init__(self, definition: dict[str, object]) -> None:
        super().__init__(definition)
        self.metadata = {**copy.deepcopy(PROCESS_METADATA), "id": "at-once", "jobControlOptions": ["sync-execute"]}
