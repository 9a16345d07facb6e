"""Incremental worst-case optimal joins in plain Python, as in the papers: generic join over Z-sets, to read and to test against.

`trie.py` has Z-sets and indexed Z-sets as tries; `extender.py` the interface of a relation to generic join; `index.py` a relation in its
old and its new version; `join.py` the incremental join; `naive.py` the same by counting, proposing and validating, as a circuit that
keeps all of these; `nested.py` the join as an operator of nested circuits. `edn.py` and `query.py` read Datalog queries. The engine
shares no code with this package.
"""
