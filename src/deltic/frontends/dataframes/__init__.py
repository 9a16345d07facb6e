"""Binds PySpark's DataFrames to the plans that SQL makes: no server, no JVM, no socket.

PySpark's client builds a plan as messages of Spark Connect. channel.py is a channel that answers within the process whatever the client
asks while a plan is made; making.py lets a user's function make one. relations.py and its neighbours turn relations into plans and
expressions.py expressions into the syntax tree of SQL, whose binder gives them types: a function or an operator means the same in both.
Connect's messages stay in this room. Plans are not optimized.
"""

from __future__ import annotations

from deltic.frontends.dataframes.channel import OuterSpark
from deltic.frontends.dataframes.making import FrameDefinition, Frames

__all__ = ["FrameDefinition", "Frames", "OuterSpark"]
