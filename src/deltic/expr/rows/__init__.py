"""What each function does to one row's values, in plain Python: no NumPy, no Arrow."""
