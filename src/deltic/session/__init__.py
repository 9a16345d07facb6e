"""A session: tables, views, and the runtime that keeps the views exact."""

from __future__ import annotations

from deltic.session.datalog import Datalog
from deltic.session.edn import EdnStore
from deltic.session.edn_view import EdnView
from deltic.session.load_progress import LoadProgress
from deltic.session.program import Program
from deltic.session.query import Answer
from deltic.session.session import Session
from deltic.session.transaction import Transaction
from deltic.session.view import View
from deltic.session.watermark import Watermark

__all__ = ["Answer", "Datalog", "EdnStore", "EdnView", "LoadProgress", "Program", "Session", "Transaction", "View", "Watermark"]
