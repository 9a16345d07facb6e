"""The array forms of the functions: Arrow compute, NumPy where that is simpler, never Python row by row.

A function that neither computes correctly calls its row form once per distinct combination of arguments (distinct.py); the interpreter
is no independent check of such a function, so the tests compare it with Spark or DuckDB. The error for a value that fails is raised by
the row form on that one row, so both evaluators raise the same errors.
"""
