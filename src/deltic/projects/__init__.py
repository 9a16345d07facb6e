"""Declarative Pipelines projects of Apache Spark, unchanged, with materialized views that are kept incrementally.

loading.py has PySpark's own loader register the definitions, planning.py decides how each dataset is refreshed, running.py refreshes them.
Deltic keeps what it can bind; Spark runs streaming flows, and what Deltic refuses; server.py alone talks to a Spark.
"""

from __future__ import annotations

from deltic.projects.loading import PipelineProject, load
from deltic.projects.planning import ProjectPlan, plan_project
from deltic.projects.running import ProjectRun, Selection

__all__ = ["PipelineProject", "ProjectPlan", "ProjectRun", "Selection", "load", "plan_project"]
