"""Every flight that left New York City in 2013, replayed as a feed of changes; the views in flights.sql stay exact through it.

data reads the tables, feed builds the changes, run applies them to a session, compare checks the views at the end,
show prints. docs/flights.md has the rules of the replay.
"""
