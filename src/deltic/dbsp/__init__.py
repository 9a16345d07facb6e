"""DBSP in plain Python, as in the papers: Z-sets, operators and circuits, for reading and as a reference for tests.

Values (`zset.py`) are immutable; `operators.py` has the operators as functions of values; `streams.py` and `nested.py` the stateful
operators; `circuit.py` the nodes and their clocks. The engine shares only the lattice of times with this package.
"""
