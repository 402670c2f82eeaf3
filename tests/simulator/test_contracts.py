"""The simulator's own contracts."""

from datetime import date
from pathlib import Path

import pytest

from adapters import contract_files

FOUND = (Path(__file__).parents[2] / "contracts").glob("sim.*.yaml")
CONTRACTS = sorted(path for path in FOUND if not path.name.endswith(".cases.yaml"))


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.stem)
def test_a_contract_of_the_simulator_loads_under_its_own_name_and_nothing_is_found_against_it(path: Path) -> None:
    assert contract_files.load(path).contract == path.stem
    assert contract_files.check(path, date(2026, 12, 1)) == []
