"""A social graph as entities, attributes and values: its datoms, changes of them, and ten queries, each in EDN and in SQL.

Persons have a name, an age and a city, and follow others; posts have an author and a topic, reply to others, and are liked. Feeds are those
of benchmarks.workloads, one for each attribute, whose rows are (entity, value); a name is given as its number, 7 for p7.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.workloads import Feed

CITIES, TOPICS, AGES = 50, 100, 90
NEIGHBOURS = 50
"""Half of those whom a person follows have numbers that differ by no more."""


@dataclass(frozen=True)
class Attribute:
    """kind: of its values. is_many: whether an entity has several."""

    kind: str
    is_many: bool = False


ATTRIBUTES = {
    "person/name": Attribute("string"),
    "person/age": Attribute("long"),
    "person/city": Attribute("long"),
    "person/follows": Attribute("ref", True),
    "person/likes": Attribute("ref", True),
    "post/author": Attribute("ref"),
    "post/topic": Attribute("long"),
    "post/reply-to": Attribute("ref"),
}
SCHEMA = {
    f":{name}": {":db/valueType": f":db.type/{one.kind}"}
    | ({":db/cardinality": ":db.cardinality/many"} if one.is_many else {})
    | ({":db/unique": ":db.unique/identity"} if name == "person/name" else {})
    for name, one in ATTRIBUTES.items()
}
RULES = """
[[(in-thread ?post ?start) [?post :post/reply-to ?start]]
 [(in-thread ?post ?start) [?post :post/reply-to ?other] (in-thread ?other ?start)]]
"""


@dataclass(frozen=True)
class Query:
    """sql: over tables (e, v) named as the attributes, with _ for / and -. rules: whether it takes RULES. is_pull: whether it is a pull,
    whose SQL has the rows of `tree_rows`."""

    edn: str
    sql: str
    rules: bool = False
    is_pull: bool = False


QUERIES = {
    "neighbours": Query(
        """[:find ?m ?n :where [?a :person/follows ?b] [?a :person/city ?c] [?b :person/city ?c]
                               [?a :person/age ?g] [?b :person/age ?g] [?a :person/name ?m] [?b :person/name ?n]]""",
        """SELECT DISTINCT m.v, n.v FROM person_follows f JOIN person_city c ON f.e = c.e JOIN person_city d ON f.v = d.e AND c.v = d.v
           JOIN person_age g ON f.e = g.e JOIN person_age h ON f.v = h.e AND g.v = h.v
           JOIN person_name m ON f.e = m.e JOIN person_name n ON f.v = n.e""",
    ),
    "mutual": Query(
        "[:find ?a ?b :where [?a :person/follows ?b] [?b :person/follows ?a] [(< ?a ?b)]]",
        "SELECT f.e, f.v FROM person_follows f JOIN person_follows g ON f.e = g.v AND f.v = g.e WHERE f.e < f.v",
    ),
    "triangles": Query(
        "[:find ?a ?b ?c :where [?a :person/follows ?b] [?b :person/follows ?c] [?a :person/follows ?c]]",
        """SELECT f.e, f.v, g.v FROM person_follows f JOIN person_follows g ON f.v = g.e JOIN person_follows h
           ON h.e = f.e AND h.v = g.v""",
    ),
    "recommended": Query(
        "[:find ?p ?post :where [?post :post/topic 7] [?f :person/likes ?post] [?p :person/follows ?f] (not [?p :person/likes ?post])]",
        """SELECT DISTINCT f.e, l.v FROM post_topic t JOIN person_likes l ON l.v = t.e JOIN person_follows f ON f.v = l.e
           WHERE t.v = 7 AND NOT EXISTS (SELECT 1 FROM person_likes o WHERE o.e = f.e AND o.v = l.v)""",
    ),
    "cities": Query(
        "[:find ?c (count ?b) (sum ?g) :with ?a :where [?a :person/follows ?b] [?a :person/city ?c] [?b :person/age ?g]]",
        """SELECT c.v, count(*), sum(g.v)::BIGINT FROM person_follows f JOIN person_city c ON f.e = c.e JOIN person_age g ON f.v = g.e
           GROUP BY c.v""",
    ),
    "popular": Query(
        "{:find [?post (count ?p)] :where [[?p :person/likes ?post]] :order-by [[(count ?p) :desc]] :limit 100}",
        "SELECT v, count(*) AS n FROM person_likes GROUP BY v ORDER BY n DESC, v LIMIT 100",
    ),
    "threads": Query(
        "[:find ?start (count ?post) :in $ % :where (in-thread ?post ?start)]",
        """WITH RECURSIVE in_thread (post, start) AS (
               SELECT e, v FROM post_reply_to UNION SELECT r.e, t.start FROM post_reply_to r JOIN in_thread t ON r.v = t.post)
           SELECT start, count(*) FROM in_thread GROUP BY start""",
        rules=True,
    ),
    "strangers": Query(
        """[:find ?a ?c :where [?a :person/city 3] [?a :person/follows ?b] [?b :person/follows ?c] [(not= ?a ?c)]
                               (not [?a :person/follows ?c])]""",
        """SELECT DISTINCT f.e, g.v FROM person_city c JOIN person_follows f ON f.e = c.e JOIN person_follows g ON g.e = f.v
           WHERE c.v = 3 AND f.e <> g.v AND NOT EXISTS (SELECT 1 FROM person_follows o WHERE o.e = f.e AND o.v = g.v)""",
    ),
    "silent": Query(
        "[:find ?e :where (or-join [?e] (and [?e :person/age ?g] [(> ?g 60)]) [_ :person/follows ?e]) [?e :person/name]"
        " (not [_ :post/author ?e]) (not [?e :person/likes])]",
        """SELECT DISTINCT n.e FROM person_name n
           WHERE (n.e IN (SELECT e FROM person_age WHERE v > 60) OR n.e IN (SELECT v FROM person_follows))
           AND n.e NOT IN (SELECT v FROM post_author) AND n.e NOT IN (SELECT e FROM person_likes)""",
    ),
    "pages": Query(
        """[:find (pull ?e [:person/name {:post/_author [:db/id :post/topic {:post/_reply-to [:db/id :post/author]}]}])
            :where [?e :person/city 5]]""",
        """WITH person AS (SELECT c.e, n.v AS name FROM person_city c JOIN person_name n ON n.e = c.e WHERE c.v = 5),
                own AS (SELECT p.name, a.e AS post FROM person p JOIN post_author a ON a.v = p.e)
           SELECT name, 0, 0, 0 FROM person UNION ALL SELECT o.name, 1, o.post, t.v FROM own o JOIN post_topic t ON t.e = o.post
           UNION ALL SELECT o.name, 2, r.e, a.v FROM own o JOIN post_reply_to r ON r.v = o.post JOIN post_author a ON a.e = r.e""",
        is_pull=True,
    ),
}
WIDTH = 4
"""The most columns that a query has."""


def table_name(attribute: str) -> str:
    """person_name for person/name."""
    return attribute.replace("/", "_").replace("-", "_")


def number(name: str) -> int:
    """7 for p7."""
    return int(name[1:])


def tree_rows(tree: dict[str, object] | None) -> Iterator[tuple[int, int, int, int]]:
    """What a tree of "pages" shows: (name, level, post, topic or author)."""
    if tree is None:
        return
    name = number(str(tree[":person/name"]))
    yield name, 0, 0, 0
    posts = tree.get(":post/_author", [])
    assert isinstance(posts, list)
    for post in posts:
        yield name, 1, post[":db/id"], post[":post/topic"]
        for reply in post.get(":post/_reply-to", []):
            yield name, 2, reply[":db/id"], reply[":post/author"][":db/id"]


class Graph:
    """datoms: about how many are loaded; changes: of a tick."""

    def __init__(self, datoms: int, ticks: int, changes: int, seed: int = 1) -> None:
        self._rng = np.random.default_rng(seed)
        self.persons, self.posts = datoms // 20, datoms * 8 // 100
        self._rows: dict[str, list[np.ndarray]] = {name: [] for name in ATTRIBUTES}
        self._load(follows=datoms * 40 // 100, likes=datoms * 23 // 100, replies=datoms * 6 // 100)
        for tick in range(1, ticks + 1):
            self._change(tick, changes)

    def feeds(self) -> dict[str, Feed]:
        """By the name of the attribute's table."""
        return {table_name(name): np.concatenate(parts).astype(np.int64) for name, parts in self._rows.items()}

    def _add(self, name: str, tick: int, weight: int, pairs: Sequence[tuple[int, int]] | np.ndarray) -> None:
        if len(pairs):
            rows = np.asarray(pairs, np.int64)
            self._rows[name].append(np.column_stack([np.full(len(rows), tick), np.full(len(rows), weight), rows]))

    def _load(self, follows: int, likes: int, replies: int) -> None:
        rng, persons = self._rng, np.arange(1, self.persons + 1)
        posts = np.arange(self.persons + 1, self.persons + self.posts + 1)
        self._ages = rng.integers(10, AGES, self.persons)
        self._add("person/name", 0, 1, np.column_stack([persons, persons]))
        self._add("person/age", 0, 1, np.column_stack([persons, self._ages]))
        self._add("person/city", 0, 1, np.column_stack([persons, (persons * CITIES // (self.persons + 1) + rng.integers(0, 2)) % CITIES]))
        self._follows, self._likes = _Pairs(self._draw_follows), _Pairs(self._draw_likes)
        self._add("person/follows", 0, 1, self._follows.grow(follows))
        self._add("person/likes", 0, 1, self._likes.grow(likes))
        self._add("post/author", 0, 1, np.column_stack([posts, rng.integers(1, self.persons + 1, self.posts)]))
        self._add("post/topic", 0, 1, np.column_stack([posts, rng.integers(0, TOPICS, self.posts)]))
        repliers = np.sort(rng.choice(posts[1:], replies, replace=False))
        targets = posts[0] + (rng.random(replies) * (repliers - posts[0])).astype(np.int64)
        self._replies = dict(zip(repliers.tolist(), targets.tolist(), strict=True))
        self._add("post/reply-to", 0, 1, [*self._replies.items()])

    def _draw_follows(self, n: int) -> np.ndarray:
        rng = self._rng
        persons = rng.integers(1, self.persons + 1, n)
        near = (persons + rng.integers(-NEIGHBOURS, NEIGHBOURS + 1, n) - 1) % self.persons + 1
        return np.column_stack([persons, np.where(rng.random(n) < 0.5, near, rng.integers(1, self.persons + 1, n))])

    def _draw_likes(self, n: int) -> np.ndarray:
        """Some posts are liked more than others."""
        ranks = (self.posts * self._rng.random(n) ** 2).astype(np.int64)
        return np.column_stack([self._rng.integers(1, self.persons + 1, n), self.persons + 1 + ranks])

    def _change(self, tick: int, changes: int) -> None:
        """A fifth are persons who follow another, and a fifth who no longer do; the rest are likes, ages, new posts, and lost replies."""
        rng = self._rng
        for name, pairs, share in (("person/follows", self._follows, 20), ("person/likes", self._likes, 15)):
            removed = [pairs.remove(rng) for _ in range(max(1, changes * share // 100))]
            self._add(name, tick, -1, removed)
            self._add(name, tick, 1, pairs.grow(len(removed), removed))
        older = rng.choice(self.persons, max(1, changes * 5 // 100), replace=False)
        before = self._ages[older].copy()
        self._ages[older] = (before - 10 + rng.integers(1, AGES - 10, len(older))) % (AGES - 10) + 10
        self._add("person/age", tick, -1, np.column_stack([older + 1, before]))
        self._add("person/age", tick, 1, np.column_stack([older + 1, self._ages[older]]))
        for _ in range(max(1, changes * 5 // 100)):
            self.posts += 1
            post, target = self.persons + self.posts, self.persons + int(rng.integers(1, self.posts))
            self._replies[post] = target
            self._add("post/author", tick, 1, [(post, int(rng.integers(1, self.persons + 1)))])
            self._add("post/topic", tick, 1, [(post, int(rng.integers(0, TOPICS)))])
            self._add("post/reply-to", tick, 1, [(post, target)])
        older_posts = [post for post in self._replies if post <= self.persons + self.posts - changes]
        lost = rng.choice(older_posts, max(1, changes * 5 // 100), replace=False).tolist()
        self._add("post/reply-to", tick, -1, [(post, self._replies.pop(post)) for post in lost])


class _Pairs:
    """Different pairs of different numbers. draw: makes random ones."""

    def __init__(self, draw: Callable[[int], np.ndarray]) -> None:
        self._draw = draw
        self._listed: list[tuple[int, int]] = []
        self._held: set[tuple[int, int]] = set()

    def grow(self, count: int, but: Collection[tuple[int, int]] = ()) -> list[tuple[int, int]]:
        """Adds so many new pairs, other than some, and returns them."""
        before = len(self._listed)
        while (missing := before + count - len(self._listed)) > 0:
            for one, other in self._draw(missing).tolist():
                if one != other and (one, other) not in self._held and (one, other) not in but:
                    self._held.add((one, other))
                    self._listed.append((one, other))
        return self._listed[before:]

    def remove(self, rng: np.random.Generator) -> tuple[int, int]:
        """Removes one and returns it."""
        position = int(rng.integers(len(self._listed)))
        pair = self._listed[position]
        self._listed[position] = self._listed[-1]
        self._listed.pop()
        self._held.remove(pair)
        return pair
