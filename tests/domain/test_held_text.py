"""Text that waits for the rest of its record is read again seldom, and soon where it is too long."""

from typing import Any

import pytest

from domain.results.held_text import HeldText


def readings(held: HeldText, pieces: int) -> list[int]:
    """How long the text was each time that it was worth reading, if nothing of it can ever be read."""
    found: list[int] = []
    for _ in range(pieces):
        if held.add("x"):
            text = held.take()
            found.append(len(text))
            held.keep(text)
    return found


@pytest.mark.parametrize(
    ("bounds", "lengths"),
    [
        ({"longest": 100}, [1, 2, 4, 8, 16, 32, 64, 101]),
        ({"longest": 100, "least": 10}, [10, 20, 40, 80, 101]),
        ({"longest": 100, "more": 20}, [1, 2, 4, 8, 16, 32, 52, 72, 92, 101]),
    ],
)
def test_a_record_that_is_long_in_coming_is_read_when_there_is_twice_as_much_and_once_it_is_too_long(
    bounds: dict[str, Any], lengths: list[int]
) -> None:
    assert readings(HeldText(**bounds), 101) == lengths


def test_what_was_taken_is_held_no_longer_and_what_is_left_comes_first() -> None:
    held = HeldText(longest=100, least=4)
    assert [held.add(piece) for piece in ("ab", "", "cd")] == [False, False, True]
    assert (held.take(), held.take(), held.length) == ("abcd", "", 0)
    held.keep("d")
    assert (held.add("e"), held.length, held.take()) == (False, 2, "de")
