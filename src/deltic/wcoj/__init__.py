"""Worst-case optimal joins that stay up to date, as they are written down: generic join over Z-sets in plain Python, to be read and to be
checked against.

`trie.py` has Z-sets and indexed Z-sets as tries; `extender.py` what generic join asks of a relation; `index.py` a relation with its old
and its new version; `join.py` the incremental join; `naive.py` the same by counting, proposing and validating, as a circuit that keeps all
of it; `nested.py` the join as an operator for circuits in circuits. `edn.py` and `query.py` read Datalog queries. The engine shares nothing
with this room.
"""
