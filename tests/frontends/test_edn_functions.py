"""The functions of queries in EDN, each over stored values of several kinds, against the oracle."""

from __future__ import annotations

import pytest

import deltic
from edn_oracle import answer
from edn_stores import stored
from edn_views import contents, shown
from parts import slow

TYPES = {"i": "long", "j": "long", "d": "double", "h": "bigdec", "g": "bigint", "s": "string", "t": "string", "k": "keyword"}
TYPES |= {"y": "symbol", "z": "boolean", "w": "boolean", "m": "instant", "x": "any"}
SCHEMA = "{" + " ".join(f":{name} {{:db/valueType :db.type/{kind}}}" for name, kind in TYPES.items()) + "}"
FACTS = r"""
[{:i -7 :j 2 :d 1.5 :h 1.50M :g 7N :s " Ann\n" :t "n" :k :a/b :y foo :z true :w false :m #inst "2020" :x foo}
 {:i 0 :j -3 :d -0.5 :h -2M :g -7N :s "" :t "" :k :c :y a/b :z false :w false :m #inst "2021" :x -a}
 {:i 3 :j 66 :d 3.0 :h 3M :g 3N :s "bOB bo" :t "bO" :k :d.e/f-g :y + :z true :w true :m #inst "1960" :x -1}
 {:i 1099511627777 :j 63 :d 1e10 :h 0M :g 9223372036854775808N :s "\u2003\tx\u00a0" :t "x" :k :z :y x.y/z
  :z false :w true :m #inst "2020" :x "s"}
 {:i 5 :j 1 :s "é" :t "é" :x \a} {:i 6 :j 1 :s "z" :t "Z" :x #inst "2020"}
 {:i 8 :j 1 :x true} {:i 9 :j 1 :x #uuid "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"}
 {:i 10 :j 1 :x :k} {:i 11 :j 1 :x 1.5} {:i 12 :j 1 :x 1M} {:i 13 :j 1 :x 1N} {:i 14 :j 1 :x +} {:i 15 :j 1 :x trues} {:i 16 :j 1 :x ##Inf}]
"""
NUMBERS = ["(+ ?i ?d)", "(- ?i ?j 1)", "(* ?j 3)", "(max ?i ?j)", "(min ?i 4)", "(identical? ?i ?j)", "(bigdec ?h)", "(bit-and ?i ?j 7)"]
NUMBERS += [
    f"({name} ?i)" for name in ("inc", "dec", "abs", "even?", "odd?", "zero?", "pos-int?", "neg-int?", "nat-int?", "bit-not", "double")
]
NUMBERS += [f"({name} ?i)" for name in ("bigint", "bigdec")] + [f"({name} ?d)" for name in ("pos?", "neg?", "pos-int?", "long")]
NUMBERS += [f"({name} ?i ?j)" for name in ("quot", "rem", "mod", "bit-or", "bit-xor", "bit-shift-left", "bit-shift-right")]
NUMBERS += [f"({name} {pair})" for name in ("compare", "<", "<=", ">", ">=", "==") for pair in ("?i ?j", "?i ?d", "?g ?i", "?h 1.5M")]
TEXTS = ["(compare ?s ?t)", "(= ?s ?t)", "(str ?s ?i ?t)", "(count ?s)", "(subs ?s 1)", "(subs ?s 1 2)", "(empty? ?s)", "(name ?k)"]
TEXTS += ["(name ?y)", "(name ?s)", "(namespace ?k)", "(namespace ?y)", '(compare ?m #inst "2020")', "(vector ?s ?k)"]
OF_STRINGS = ("upper-case", "lower-case", "capitalize", "reverse", "trim", "triml", "trimr", "blank?")
TEXTS += [f"(clojure.string/{name} ?s)" for name in OF_STRINGS]
TEXTS += [f"(clojure.string/{name} ?s ?t)" for name in ("index-of", "starts-with?", "ends-with?", "includes?")]
TRUTHS = ["(not ?z)", "(and ?z ?w true)", "(or ?z ?w)", "(true? ?z)", "(false? ?z)", "(not= ?z ?w)"]
OF_KINDS = ("string", "keyword", "symbol", "char", "uuid", "inst", "boolean", "int", "integer", "double", "float", "decimal", "number")
KINDS = [*(f"({name}? ?x)" for name in OF_KINDS), "(symbol? ?y)", "(inst? ?m)", "(uuid? ?s)", "(char? ?k)"]
CALLS = [*NUMBERS, *TEXTS, *TRUTHS, *KINDS]


@pytest.mark.parametrize("calls", [CALLS[::16], *slow(CALLS)], ids=len)
def test_functions_are_those_of_clojure(calls: list[str]) -> None:
    with deltic.Session() as session:
        store = session.edn_store("facts", schema=SCHEMA)
        views = {}
        for call in calls:
            where = " ".join(f"[?e :{name} ?{name}]" for name in TYPES if f"?{name})" in call or f"?{name} " in call)
            query = f"[:find ?e ?result :where {where} [{call} ?result]]"
            views[query] = session.edn(query, name=f"v{len(views)}")
        for data in (FACTS, '[[:db/retract 1 :i] [:db/add 2 :s "A b"] [:db/retractEntity 4] [:db/add 5 :j 3]]'):
            store.transact(data)
            for query, view in views.items():
                assert contents(view) == shown(answer(query, stored(store))), query


def test_functions_without_arguments(session_of_one: deltic.Session) -> None:
    ask = session_of_one.edn
    assert ask("[:find [?a ?b] :where [_ :i] [(+) ?a] [(*) ?b]]", name="v").result() == (0, 1)


@pytest.fixture
def session_of_one() -> deltic.Session:
    session = deltic.Session()
    session.edn_store("facts", schema=SCHEMA).transact("[{:i 1}]")
    return session
