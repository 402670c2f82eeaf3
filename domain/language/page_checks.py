"""What is wrong with how pages lead on, wherever they stand: in a step, a lookup or an output."""

from collections.abc import Iterator
from typing import Final

from domain.language.calls import Pages

ONE_WAY: Final = ("next", "next_url", "count")
"""How a page leads on: at most one of them."""


def check_way(pages: Pages, *, needed: bool) -> Iterator[str]:
    """What was expected. `needed`: a single page is not enough, so something has to lead on."""
    ways = [name for name in ONE_WAY if getattr(pages, name)]
    if len(ways) > 1:
        yield f"at most one of {', '.join(ONE_WAY)}"
    if needed and not ways and not pages.more:
        yield f"how a page leads on: {', '.join(ONE_WAY)} or more"
