"""Binds Datalog queries in EDN, over stores of entities, attributes and values, to the plans that SQL makes.

read.py makes forms of text, and values.py text of forms.
"""
