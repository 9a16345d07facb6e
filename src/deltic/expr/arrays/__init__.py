"""What each function does to whole columns: Arrow compute, NumPy where that is simpler, never Python row by row.

A function that neither can do right runs once per distinct value (distinct.py) with the code of deltic.expr.rows. Where a column
holds a value that fails, the error is made by running that one row, so both evaluators speak alike.
"""
