"""Binds Datalog queries in EDN, over stores of entities, attributes and values, to the plans that SQL makes, and transactions of them to
changes of their tables.

read.py makes forms of text, and values.py text of forms. schema.py has the attributes of a store, each a table; operations.py and
transact.py turn a transaction into changes of these tables. parse.py makes the tree of tree.py; patterns.py, bind_body.py and
bind_rules.py bind clauses to relations of bindings (relation.py), and bind_query.py makes the plan of a view of them. Plans are not
optimized.
"""

from __future__ import annotations

from deltic.frontends.edn.values import Char, Keyword, Symbol

__all__ = ["Char", "Keyword", "Symbol"]
