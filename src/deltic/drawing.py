"""Drawings of circuits: text, Mermaid and Graphviz.

A vertex has a global id, the path of its local ids. A scope is a cluster of the vertices whose ids extend its own.

>>> scope = [Vertex("1.0", "import", ("0",)), Vertex("1.1", "feedback", (), ("1.0",))]
>>> print(text([Vertex("0", "source edges"), Vertex("1", "child paths"), *scope]))
0    source edges
1    child paths
  1.0  import from 0
  1.1  feedback from 1.0 later
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vertex:
    """One node. inputs: the ids of the vertices that it reads. later: those that it reads one iteration later, drawn dashed.

    A vertex whose id extends another id is in that vertex's scope.
    """

    id: str
    label: str
    inputs: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


def text(vertices: Sequence[Vertex]) -> str:
    """One line per vertex; the vertices of a scope are indented below it."""
    return "\n".join(_line(vertex) for vertex in vertices)


def mermaid(vertices: Sequence[Vertex]) -> str:
    """A Mermaid flowchart; scopes are subgraphs.

    >>> print(mermaid([Vertex("0", "source"), Vertex("1", "map", ("0",))]))
    flowchart TD
      n0["0 source"]
      n1["1 map"]
      n0 --> n1
    """
    lines = ["flowchart TD", *_nested(vertices, "", 1, _mermaid_node, 'subgraph s{name}["{id}"]', "end")]
    for vertex in vertices:
        lines += [f"  {_name(source)} --> {_name(vertex.id)}" for source in vertex.inputs]
        lines += [f"  {_name(source)} -.-> {_name(vertex.id)}" for source in vertex.later]
    return "\n".join(lines)


def graphviz(vertices: Sequence[Vertex]) -> str:
    """A Graphviz digraph; scopes are clusters.

    >>> print(graphviz([Vertex("0", "source"), Vertex("1", "map", ("0",))]))
    digraph circuit {
      node [shape=box]
      n0 [label="0 source"]
      n1 [label="1 map"]
      n0 -> n1
    }
    """
    cluster = 'subgraph cluster_{name} {{ label="{id}"'
    lines = ["digraph circuit {", "  node [shape=box]", *_nested(vertices, "", 1, _graphviz_node, cluster, "}")]
    for vertex in vertices:
        lines += [f"  {_name(source)} -> {_name(vertex.id)}" for source in vertex.inputs]
        lines += [f"  {_name(source)} -> {_name(vertex.id)} [style=dashed]" for source in vertex.later]
    return "\n".join([*lines, "}"])


def _line(vertex: Vertex) -> str:
    sources = [*vertex.inputs, *(f"{source} later" for source in vertex.later)]
    reads = f" from {', '.join(sources)}" if sources else ""
    return f"{'  ' * vertex.id.count('.')}{vertex.id:<4} {vertex.label}{reads}"


def _nested(vertices: Sequence[Vertex], scope: str, depth: int, node: Callable[[Vertex], str], opened: str, closed: str) -> list[str]:
    """The vertices directly in the scope, each followed by its own scope, if it has one."""
    lines = []
    for vertex in vertices:
        if vertex.id.rpartition(".")[0] != scope:
            continue
        lines.append("  " * depth + node(vertex))
        inner = _nested(vertices, vertex.id, depth + 1, node, opened, closed)
        if inner:
            lines += ["  " * depth + opened.format(name=_name(vertex.id), id=vertex.id), *inner, "  " * depth + closed]
    return lines


def _mermaid_node(vertex: Vertex) -> str:
    label = vertex.label.replace('"', "#quot;")
    return f'{_name(vertex.id)}["{vertex.id} {label}"]'


def _graphviz_node(vertex: Vertex) -> str:
    label = vertex.label.replace("\\", "\\\\").replace('"', '\\"')
    return f'{_name(vertex.id)} [label="{vertex.id} {label}"]'


def _name(id: str) -> str:
    return "n" + id.replace(".", "_")
