"""Subscribers: who is called after commits, and what they have not heard yet.

Each commit's calls are queued by the thread that made it, under the session's lock; they are made by one thread at a time, outside of that
lock. A thread that finds another one making calls leaves its own to it (the queue-drain of reactive streams), so nobody waits for a
subscriber, and a subscriber may tick, read, or wait for a thread that does.

Always: calls are made in the order of commits, and within a commit in the order of subscriptions; each of them once. What Ctrl-C or
an error that ends the program keeps from being made stays in the queue, and is made first when the session next commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock

import pyarrow as pa

from deltic.errors import SubscriberError
from deltic.runtimes import TickResult

Subscriber = Callable[[pa.Table], object]


class Subscription:
    """A callback for the commits after epoch `since`, until it has ended."""

    __slots__ = ("callback", "ended", "since", "view")

    def __init__(self, view: str, callback: Subscriber, since: int) -> None:
        self.view, self.callback, self.since = view, callback, since
        self.ended = False

    def end(self) -> None:
        """No call begins from now on."""
        self.ended = True


class _Commit:
    """The calls of one commit, and the commit after it. begun: how many calls have been."""

    __slots__ = ("begun", "calls", "epoch", "following")

    def __init__(self, epoch: int, calls: tuple[tuple[Subscription, pa.Table], ...]) -> None:
        self.epoch, self.calls = epoch, calls
        self.begun = 0
        self.following: _Commit | None = None


class Subscribers:
    """A queue is a linked list, so that whoever is interrupted has either added a commit or not."""

    def __init__(self) -> None:
        self._subscriptions: tuple[Subscription, ...] = ()
        self._newest = self._delivered = _Commit(0, ())
        self._lock = Lock()
        self._delivering: object = None
        """Stands for the call of `deliver` that makes the calls now."""
        self._causes: list[Exception] = []
        self._made = 0
        """Of the calls that were made and not reported: what they raised, and how many there were."""

    def add(self, view: str, callback: Subscriber, since: int) -> Subscription:
        """A subscription to what is committed after epoch `since`. Under the session's lock."""
        subscription = Subscription(view, callback, since)
        self._subscriptions = (*(one for one in self._subscriptions if not one.ended), subscription)
        return subscription

    def keep(self, views: Collection[str]) -> None:
        """Ends subscriptions to other views. Under the session's lock."""
        for subscription in self._subscriptions:
            if subscription.view not in views:
                subscription.end()
        self._subscriptions = tuple(one for one in self._subscriptions if not one.ended)

    def queue(self, tick: TickResult, change: Callable[[str], pa.Table]) -> None:
        """The calls of a commit, unless they have been queued. change: of a view in it, decoded. Under the session's lock."""
        while self._newest.following is not None:
            self._newest = self._newest.following
        if tick.epoch <= self._newest.epoch:
            return
        heard = [one for one in self._subscriptions if one.view in tick.changes and one.since < tick.epoch and not one.ended]
        if heard:
            self._newest.following = _Commit(tick.epoch, tuple((one, change(one.view)) for one in heard))

    def deliver(self) -> None:
        """Makes all calls that are queued, or leaves them to the thread that is at it. Not under the session's lock.

        Raises SubscriberError, when all calls have been made, if some of them raised.
        """
        turn = object()
        causes: list[Exception] = []
        made = 0
        while self._delivered.following is not None or self._causes:
            try:
                with self._lock:
                    if self._delivering is None:
                        self._delivering = turn
                if self._delivering is not turn:
                    break
                self._deliver()
                causes, made = [*causes, *self._causes], made + self._made
                self._causes, self._made = [], 0
            finally:
                if self._delivering is turn:
                    self._delivering = None
        if causes:
            first = causes[0]
            raise SubscriberError(
                f"{len(causes)} of {made} subscribers raised, the first {type(first).__name__}: {first}; the tick is committed",
                causes=tuple(causes),
            ) from first

    def _deliver(self) -> None:
        while (commit := self._delivered.following) is not None:
            while commit.begun < len(commit.calls):
                subscription, change = commit.calls[commit.begun]
                if subscription.ended:
                    commit.begun += 1
                    continue
                self._made += 1
                commit.begun += 1  # nothing comes between this and the call: signals are handled when functions begin and return
                try:
                    subscription.callback(change)
                except Exception as error:  # a subscriber's own failure; it is reported when all have run
                    self._causes.append(error)
            commit.calls = ()
            self._delivered = commit
