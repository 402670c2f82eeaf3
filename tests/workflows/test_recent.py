"""What is kept in memory of operations is bounded by its size, not by their number."""

from activities.loading import Recent


def test_the_one_used_longest_ago_goes_first() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_a_heavy_value_drops_as_many_as_it_needs_room_for() -> None:
    recent: Recent[str, str] = Recent(10)
    for key in "abc":
        recent.put(key, key, weight=3)
    recent.put("d", "d", weight=7)
    assert [recent.get(key) for key in "abcd"] == [None, None, "c", "d"]


def test_a_value_that_is_heavier_than_all_is_handed_back_and_not_kept() -> None:
    recent: Recent[str, str] = Recent(10)
    assert recent.put("a", "a", weight=11) == "a"
    assert recent.get("a") is None
    recent.put("b", "b", weight=10)
    assert recent.get("b") == "b"


def test_a_value_that_is_put_again_weighs_what_it_weighs_now() -> None:
    recent: Recent[str, str] = Recent(10)
    recent.put("a", "light", weight=9)
    recent.put("a", "lighter", weight=1)
    recent.put("b", "b", weight=9)
    assert (recent.get("a"), recent.get("b")) == ("lighter", "b")
