"""Waits that cost little: a bell for one waiter, and one timer for many waits."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from lettaweb.lib.bell import Bell
from lettaweb.lib.patience import Patience

SHORT, LONG = 0.02, 30.0  # seconds


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# --- a bell ---------------------------------------------------------------------------------------


async def test_a_bell_that_rang_before_lets_pass_at_once() -> None:
    bell = Bell()
    bell.ring()
    await bell.wait()
    assert bell.rung


async def test_a_bell_wakes_who_waits_and_rings_as_often_as_anybody_likes() -> None:
    bell = Bell()
    waiting = asyncio.create_task(bell.wait())
    await turns()
    assert not waiting.done()
    bell.ring()
    bell.ring()
    await waiting


async def test_a_bell_that_is_cleared_before_the_waiter_ran_keeps_it_waiting() -> None:
    bell = Bell()
    waiting = asyncio.create_task(bell.wait())
    await turns()
    bell.ring()
    bell.clear()
    await turns()
    assert not waiting.done()
    bell.ring()
    await waiting


async def test_a_bell_rings_for_nobody_when_its_waiter_was_cancelled() -> None:
    bell = Bell()
    waiting = asyncio.create_task(bell.wait())
    await turns()
    waiting.cancel()
    bell.ring()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await bell.wait()


# --- patience -------------------------------------------------------------------------------------


async def test_it_gives_what_comes_in_time_and_raises_what_fails() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with Patience(LONG) as patience:
        assert await patience.for_(asyncio.sleep(0, "a")) == "a"
        assert await patience.for_(asyncio.sleep(0.01, "b")) == "b"
        with pytest.raises(KeyError):
            await patience.for_(fail())


async def test_each_wait_has_the_whole_limit() -> None:
    """The timer of the first wait rings in the second: too early, and so it is set again."""
    with Patience(LONG) as patience:
        await patience.for_(asyncio.sleep(0))
        waiting = asyncio.create_task(patience.for_(asyncio.Event().wait()))
        await turns()
        patience._ring()
        await turns()
        assert not waiting.done()
        assert patience._timer is not None
        patience._since -= LONG
        patience._ring()
        with pytest.raises(TimeoutError):
            await waiting


async def test_time_between_two_waits_does_not_count() -> None:
    with Patience(LONG) as patience:
        await patience.for_(asyncio.sleep(0))
        patience._since -= LONG
        patience._ring()
        assert await patience.for_(asyncio.sleep(0, "late")) == "late"


async def test_after_it_ran_out_the_task_goes_on_and_may_wait_again() -> None:
    with Patience(SHORT) as patience:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await patience.for_(asyncio.Event().wait())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_cancellation_from_outside_is_one() -> None:
    async def wait() -> None:
        with Patience(LONG) as patience:
            await patience.for_(asyncio.Event().wait())

    waiting = asyncio.create_task(wait())
    await turns()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_cancellation_that_comes_as_it_runs_out_wins() -> None:
    with Patience(LONG) as patience:
        waiting = asyncio.create_task(patience.for_(asyncio.Event().wait()))
        await turns()
        patience._since -= LONG
        patience._ring()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_a_cancellation_after_it_ran_out_is_one() -> None:
    """The same, once it had run out before, and where what was waited for made something else of its end."""

    async def swallow() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "swallowed"

    with Patience(SHORT) as patience:
        assert await patience.for_(swallow()) == "swallowed"
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        with pytest.raises(TimeoutError):
            await patience.for_(asyncio.Event().wait())
    with Patience(LONG) as patience:
        patience._over = True
        waiting = asyncio.create_task(patience.for_(asyncio.Event().wait()))
        await turns()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_it_leaves_no_timer_behind() -> None:
    with Patience(LONG) as patience:
        await patience.for_(asyncio.sleep(0))
        timer = patience._timer
        assert timer is not None
        assert not timer.cancelled()
    assert timer.cancelled()
