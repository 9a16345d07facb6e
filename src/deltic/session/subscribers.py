"""Subscribers, which are called after commits, and the queue of calls that are still to be made.

The thread that commits queues the calls of its commit, under the session's lock; one thread at a time makes them, outside of that lock. A
thread leaves its calls to another one that is making calls already (the queue-drain of reactive streams), so no thread waits for a
subscriber, and a subscriber may tick, read, or wait for a thread that does.

Invariant: calls are made in the order of commits, and within a commit in the order of subscriptions, each once. Calls that Ctrl-C or
an error that ends the program prevents stay in the queue, and are made first when the session next commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from threading import Lock
from typing import Any

import pyarrow as pa

from deltic.errors import SubscriberError

Subscriber = Callable[[pa.Table], object]
EpochSubscriber = Callable[[Any, int], object]
"""(changes, epoch)."""


class Subscription:
    """A callback for the commits after epoch `since` that change one of the views, until it is ended.

    read: what the callback is called with, read in the turn of the commit; nothing is queued if it is empty.
    """

    __slots__ = ("callback", "ended", "read", "since", "views")

    def __init__(self, views: Sequence[str], read: Callable[[], Collection[Any]], callback: EpochSubscriber, since: int) -> None:
        self.views, self.read, self.callback, self.since = views, read, callback, since
        self.ended = False

    def end(self) -> None:
        """No call begins after this."""
        self.ended = True


class _Commit:
    """The calls of one commit, and the commit after it. started: how many of the calls have started."""

    __slots__ = ("calls", "epoch", "following", "started")

    def __init__(self, epoch: int, calls: tuple[tuple[Subscription, Any], ...]) -> None:
        self.epoch, self.calls = epoch, calls
        self.started = 0
        self.following: _Commit | None = None


class Subscribers:
    """The queue is a linked list, so that an interrupted thread has either added a commit or not."""

    def __init__(self) -> None:
        self._subscriptions: tuple[Subscription, ...] = ()
        self._newest = self._delivered = _Commit(0, ())
        self._lock = Lock()
        self._delivering: object = None
        """Identifies the call of `deliver` that is making calls."""
        self._causes: list[Exception] = []
        self._made = 0
        """Of the calls that were made and not reported: the exceptions, and the number of calls."""

    def add(self, views: Sequence[str], read: Callable[[], Collection[Any]], callback: EpochSubscriber, since: int) -> Subscription:
        """A subscription to what is committed after epoch `since`. Under the session's lock."""
        subscription = Subscription(views, read, callback, since)
        self._subscriptions = (*(other for other in self._subscriptions if not other.ended), subscription)
        return subscription

    def keep(self, views: Collection[str]) -> None:
        """Ends subscriptions to other views. Under the session's lock."""
        for subscription in self._subscriptions:
            if not all(view in views for view in subscription.views):
                subscription.end()
        self._subscriptions = tuple(subscription for subscription in self._subscriptions if not subscription.ended)

    def queue(self, epoch: int, changed: Collection[str]) -> None:
        """Queues the calls of a commit that changed some views, once. Under the session's lock."""
        while self._newest.following is not None:
            self._newest = self._newest.following
        if epoch <= self._newest.epoch or not self._subscriptions:
            return
        due = [s for s in self._subscriptions if not s.ended and s.since < epoch and any(view in changed for view in s.views)]
        calls = [(subscription, changes) for subscription in due if len(changes := subscription.read())]
        if calls:
            self._newest.following = _Commit(epoch, tuple(calls))

    def deliver(self) -> None:
        """Makes all queued calls, or leaves them to the thread that is making calls. Not under the session's lock.

        Raises SubscriberError, after all calls have been made, if some of them raised.
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
            while commit.started < len(commit.calls):
                subscription, change = commit.calls[commit.started]
                if subscription.ended:
                    commit.started += 1
                    continue
                self._made += 1
                commit.started += 1  # nothing comes between this and the call: signals are handled when functions begin and return
                try:
                    subscription.callback(change, commit.epoch)
                except Exception as error:  # a subscriber's own failure; it is reported when all have run
                    self._causes.append(error)
            commit.calls = ()
            self._delivered = commit
