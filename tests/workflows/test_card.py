"""What people see of an operation in Temporal is bounded and inert."""

from domain.messages import Card, Head
from workflows.card import MAX_KEYWORD, attributes_of, details_of, keyword

HEAD = Head(state="observing", seq=7, hash="0" * 64, step="observe")


def test_a_short_keyword_stands_as_it_is() -> None:
    assert keyword("job-1") == "job-1"


def test_a_long_keyword_stands_as_prefix_and_digest_within_the_limit_of_the_index() -> None:
    long = "ü" * 300
    assert len(keyword(long).encode()) <= MAX_KEYWORD
    assert keyword(long).startswith("üü")
    assert keyword(long) != keyword(long + "x")


def test_what_is_not_known_yet_is_no_search_attribute() -> None:
    assert attributes_of(HEAD) == {"SakshiState": "observing", "SakshiAttention": False}


def test_a_known_job_can_be_searched_for() -> None:
    card = Card(contract="sim@1", tenant="t1", job="j" * 400)
    found = attributes_of(HEAD.model_copy(update={"card": card}))
    assert found["SakshiContract"] == "sim@1"
    assert len(str(found["SakshiJob"])) <= MAX_KEYWORD


def test_words_of_a_provider_are_inert_on_the_card() -> None:
    card = Card(summary="[click](https://elsewhere.example) **now**", remote_state="`running`")
    shown = details_of("op-1", HEAD.model_copy(update={"card": card}))
    assert "[click](" not in shown
    assert "**now**" not in shown
    assert "cancel op-1 " in shown


def test_an_address_that_a_provider_wrote_is_no_link() -> None:
    card = Card(why="see https://elsewhere.example/x or ftp://elsewhere.example or mailto:a@elsewhere.example &lt;")
    shown = details_of("op-1", HEAD.model_copy(update={"card": card}))
    assert not any(sign in shown for sign in ("https:", "ftp:", "mailto:", " &lt"))


def test_progress_is_no_fraction() -> None:
    shown = details_of("op-1", HEAD.model_copy(update={"card": Card(remote_state="running", progress="5/5")}))
    assert "running 5 of 5" in shown


def test_each_choice_is_told_in_words_and_where_to_see_more() -> None:
    card = Card(choices=("adopt", "accept_failed"))
    shown = details_of("op-1", HEAD.model_copy(update={"attention": True, "step": "inbox", "card": card}))
    assert "resolve op-1 adopt JOB --by YOU --reason WHY`: take a job that you have found" in shown
    assert "resolve op-1 accept failed --by YOU --reason WHY`: take the outcome as failure" in shown
    assert "list --attention`" in shown
    assert "escalate op-1 --output DIR`" in shown


def test_no_cancel_is_offered_where_one_was_asked_for_or_the_job_has_ended() -> None:
    for state in ("cancel_requested", "cancelling", "result_collecting"):
        assert "starter.py cancel" not in details_of("op-1", HEAD.model_copy(update={"state": state}))


def test_while_the_status_is_read_the_card_says_of_which_moment_it_is() -> None:
    told = "are those of the moment at which the reading began"
    for state in ("accepted", "observing", "cancelling"):
        shown = details_of("op-1", HEAD.model_copy(update={"state": state}))
        assert told in shown
        assert "`python starter.py status op-1`" in shown
    for step in ("create", "collect", "done", "inbox"):
        assert told not in details_of("op-1", HEAD.model_copy(update={"step": step, "attention": step == "inbox"}))


def test_an_operation_that_takes_back_what_was_prepared_has_ended_and_offers_no_cancel() -> None:
    shown = details_of("op-1", HEAD.model_copy(update={"step": "undo", "state": "denied"}))
    assert "what was prepared for one is taken back" in shown
    assert "cancel" not in shown


def test_an_operation_that_waits_for_a_human_shows_what_may_be_chosen() -> None:
    card = Card(choices=("resume", "abandon"), why="it took too long")
    shown = details_of("op-1", HEAD.model_copy(update={"attention": True, "step": "inbox", "card": card}))
    assert "resolve op-1 resume" in shown
    assert "resolve op-1 abandon" in shown


def test_an_operation_that_has_ended_offers_nothing() -> None:
    shown = details_of("op-1", HEAD.model_copy(update={"step": "done", "state": "succeeded"}))
    assert "cancel" not in shown
