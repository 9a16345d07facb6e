"""What is said about a project before it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

from deltic.projects.planning import SHOWN, DatasetPlan, ProjectPlan
from deltic.session import Program, Session

COMPARED: Final = "compared with the rows that Deltic holds"
BY_FEED: Final = "by its change feed"
CHEAPER: Final = "cheaper: a streaming table of it, or in Delta the table property delta.enableChangeDataFeed = true"


def as_text(plan: ProjectPlan, feeds: Collection[str]) -> str:
    """A line for each dataset and each source. feeds: the sources that have a change feed."""
    width = max((len(key) for key in plan.datasets), default=0)
    lines = []
    for key, one in plan.datasets.items():
        why = f": {reason(one)}" if one.refusal is not None else ""
        lines.append(f"{key:{width}}  {SHOWN[one.refresh]}  ({one.dataset.kind}, {one.dataset.place}){why}")
    lines += [f"source {key}: {BY_FEED if key in feeds else COMPARED}" for key in plan.sources]
    return "\n".join(lines)


def explained(plan: ProjectPlan, keys: Iterable[str], feeds: Collection[str]) -> str:
    """The plans of datasets, or of all, and what would be cheaper."""
    with Session() as session:
        session.program(Program.defined_by(plan.statements()))
        chosen = set(keys)
        views = [one.dataset.key for one in plan.incremental if not chosen or one.dataset.key in chosen]
        pictures = [str(session.explain(view)) for view in views]
    hints = [f"source {key} is read whole in every run; {CHEAPER}" for key in plan.sources if key not in feeds]
    return "\n".join([*pictures, *hints])


def reason(one: DatasetPlan) -> str:
    """Why Deltic does not keep a dataset, with the place."""
    error = one.refusal
    if error is None:
        return ""
    place = "" if error.span is None else f"{error.span.name}:{error.span.line}: "
    return f"{place}{error.message}"


class ProjectStart(NamedTuple):
    """The start of a run. epoch: the last one committed before; None if the state is new."""

    epoch: int | None
    plan: ProjectPlan
    feeds: Collection[str]

    def json(self) -> dict[str, Any]:
        return {"event": "start", "epoch": self.epoch, **as_json(self.plan, self.feeds)}


def as_json(plan: ProjectPlan, feeds: Collection[str]) -> dict[str, Any]:
    """The same as one object."""
    return {
        "name": plan.project.name,
        "datasets": [
            {
                "name": key,
                "kind": one.dataset.kind,
                "refresh": one.refresh,
                "file": one.dataset.place.file,
                "line": one.dataset.place.line,
                "reads": list(one.reads),
                "reason": reason(one) or None,
            }
            for key, one in plan.datasets.items()
        ],
        "sources": [{"name": key, "taken": "change feed" if key in feeds else "compared"} for key in plan.sources],
    }
