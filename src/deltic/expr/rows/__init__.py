"""The row forms of the functions, in plain Python: no NumPy, no Arrow."""
