"""docs/security.md names tests; each of them must be there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_test_that_the_security_page_names_is_there() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    written = {name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)\(", path.read_text())}
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 20
    assert named <= written, sorted(named - written)
