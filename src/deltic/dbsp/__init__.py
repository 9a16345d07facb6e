"""DBSP as it is written down: Z-sets, its operators and its circuits in plain Python, to be read and to be checked against.

Values (`zset.py`) are immutable; `operators.py` has the operators as functions of values; `streams.py` and `nested.py` those that keep
something from one evaluation to the next; `circuit.py` the nodes and their clocks. The engine shares nothing with this room but the
lattice of times.
"""
