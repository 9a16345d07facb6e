"""What each function does to whole columns: Arrow compute, NumPy where that is simpler, never Python row by row.

A function that neither can do right runs its row form once per distinct combination of arguments (distinct.py); the interpreter is no
second opinion on such a one, so the tests compare it with Spark or DuckDB. Where a column
holds a value that fails, the error is made by running that one row, so both evaluators speak alike.
"""
