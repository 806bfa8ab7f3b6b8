"""A blueprint as a picture: text for terminals, a Mermaid flowchart, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from dimos_streams.blueprint.classes import module_class
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.wiring import Port, external_channels, ports_of, wire
from dimos_streams.common.readable.unseen import written_out
from dimos_streams.messages.codec import split_channel

GraphFormat = Literal["text", "mermaid", "json"]


@dataclass(frozen=True, slots=True)
class Node:
    """One module."""

    module: str
    type: str
    process: str
    skills: tuple[str, ...]
    unwired: tuple[str, ...]
    """Inputs that nothing sends to."""
    machine: str | None = None
    """The computer on which it runs, where the blueprint names several."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One output and one input of a channel."""

    channel: str
    source: str | None
    """A module; None for what comes from outside."""
    target: str | None
    """A module; None where nobody in the blueprint listens."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Modules and what flows between them, in the order of the blueprint."""

    blueprint: str
    description: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def graph(blueprint: Blueprint) -> Graph:
    """The modules of a blueprint and the topics that connect them. Starts nothing.

    Raises ``BlueprintError`` if a class can't be imported.
    """
    wiring = wire(blueprint)
    ports = [port for spec in blueprint.modules.values() for port in ports_of(spec, module_class(spec))]
    nodes = (
        Node(name, spec.type, spec.process or name, wiring[name].skills, wiring[name].unwired, spec.machine)
        for name, spec in blueprint.modules.items()
    )
    edges = _edges([port for port in ports if port.topic], external_channels(blueprint))
    return Graph(blueprint.name, blueprint.description, tuple(nodes), tuple(edges))


def render(blueprint: Blueprint, form: GraphFormat = "text") -> str:
    """The graph in one of the formats, without a newline at the end. Raises as ``graph`` does."""
    drawn = graph(blueprint)
    if form == "json":
        return json.dumps(asdict(drawn), indent=2, ensure_ascii=False)
    return "\n".join(_mermaid(drawn) if form == "mermaid" else _text(drawn))


def _edges(ports: list[Port], outside: set[str]) -> Iterator[Edge]:
    inputs = [port for port in ports if port.stream.direction == "in"]
    sources: list[tuple[str | None, str]] = [(p.module, p.channel) for p in ports if p.stream.direction == "out"]
    sources += [(None, channel) for channel in sorted(outside)]
    for source, channel in sources:
        targets: list[str | None] = [port.module for port in inputs if channel in port.channels]
        for target in targets or [None]:
            yield Edge(channel, source, target)


def _text(graph: Graph) -> Iterator[str]:
    name = written_out(graph.blueprint)  # it may have line ends
    yield f"{name}: {graph.description.partition(chr(10))[0]}" if graph.description else name
    width = max((len(split_channel(edge.channel)[0]) for edge in graph.edges), default=0)
    kind_width = max((len(split_channel(edge.channel)[1]) for edge in graph.edges), default=0)
    for process, machine in dict.fromkeys((node.process, node.machine) for node in graph.nodes):
        yield ""
        members = [node for node in graph.nodes if (node.process, node.machine) == (process, machine)]
        yield f"process {process} on {machine}" if machine else f"process {process}"
        for node in members:
            last = node is members[-1]
            yield f"{'└─' if last else '├─'} {node.module}  ({node.type})"
            for line in _details(graph, node, width, kind_width):
                yield f"{'   ' if last else '│  '}  {line}"


def _details(graph: Graph, node: Node, width: int, kind_width: int) -> Iterator[str]:
    incoming = [(edge.channel, edge.source or "outside") for edge in graph.edges if edge.target == node.module]
    outgoing = [(edge.channel, edge.target or "(nobody)") for edge in graph.edges if edge.source == node.module]
    for arrow, ends in (("◀", incoming), ("▶", outgoing)):
        for channel in dict.fromkeys(channel for channel, _ in ends):
            topic, kind = split_channel(channel)
            others = ", ".join(_seen_from(node, other, graph) for name, other in ends if name == channel)
            yield f"{arrow} {topic:{width}}  {kind:{kind_width}}  {others}"
    if node.unwired:
        yield f"unwired: {', '.join(node.unwired)}"
    if node.skills:
        yield f"skills: {', '.join(node.skills)}"


def _seen_from(node: Node, other: str, graph: Graph) -> str:
    """The name of another module, with its machine where that is another one."""
    machine = next((each.machine for each in graph.nodes if each.module == other), node.machine)
    return other if machine == node.machine else f"{other} on {machine}"


def _mermaid(graph: Graph) -> Iterator[str]:
    yield "flowchart LR"
    for machine in dict.fromkeys(node.machine for node in graph.nodes):
        members = [node for node in graph.nodes if node.machine == machine]
        if machine is None:
            yield from _mermaid_processes(members)
            continue
        yield f'  subgraph {_id("machine", machine)}["{machine}"]'
        yield from (f"  {line}" for line in _mermaid_processes(members, f"{machine}_"))
        yield "  end"
    yield from _mermaid_edges(graph.edges)


def _mermaid_processes(nodes: list[Node], machine: str = "") -> Iterator[str]:
    """``machine`` goes before the identifiers: a process of one label may be on each."""
    for process in dict.fromkeys(node.process for node in nodes):
        yield f'  subgraph {_id("process", machine + process)}["{process}"]'
        for node in nodes:
            if node.process == process:
                lines = [f"<b>{node.module}</b>", *(f"{skill}()" for skill in node.skills)]
                yield f'    {_id("module", node.module)}["{"<br/>".join(lines)}"]'
        yield "  end"


def _mermaid_edges(edges: Iterable[Edge]) -> Iterator[str]:
    """One arrow for all topics from one module to another; outputs that nobody reads are left out."""
    topics: dict[tuple[str | None, str], list[str]] = {}
    for edge in edges:
        if edge.target is not None:
            topics.setdefault((edge.source, edge.target), []).append(split_channel(edge.channel)[0])
    if any(source is None for source, _ in topics):
        yield "  outside((outside))"
    for (source, target), names in topics.items():
        start = "outside" if source is None else _id("module", source)
        yield f'  {start} -- "{"<br/>".join(names)}" --> {_id("module", target)}'


def _id(kind: str, name: str) -> str:
    """An identifier that is no word of Mermaid's own."""
    return f"{kind}_{name.replace('/', '__').replace('-', '_')}"
