"""Every lie while a lost create is looked up, for every contract: what must come of it is derived from the rules, and comes of it."""

from pathlib import Path

import pytest

from tests.matrix.kinds import Kind
from tests.matrix.proving import kinds_in, prove


@pytest.mark.parametrize("kind", kinds_in("lookup"), ids=lambda kind: kind.name)
async def test_what_comes_of_a_lie_while_a_lost_create_is_looked_up_is_what_the_rules_say(tmp_path: Path, kind: Kind) -> None:
    await prove(tmp_path, "lookup", kind)
