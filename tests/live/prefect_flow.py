"""The flow that the Prefect of the tests serves. Runs in Prefect's own environment, never in ours."""

import time

from prefect import flow  # pyright: ignore[reportMissingImports]
from prefect.artifacts import create_table_artifact  # pyright: ignore[reportMissingImports]


@flow(name="count")  # pyright: ignore[reportUntypedFunctionDecorator]
def count(rows: int = 3, seconds: float = 0.0, fails: bool = False) -> int:
    """Take a while, leave a table of so many rows, or fail."""
    time.sleep(seconds)
    if fails:
        raise ValueError("asked to fail")
    create_table_artifact(key="rows", table=[{"row": number} for number in range(rows)])
    return rows


if __name__ == "__main__":
    count.serve(name="live", limit=4)  # pyright: ignore[reportFunctionMemberAccess]
