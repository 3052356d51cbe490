"""A difference, cut down to a few nodes: outputs, then nodes whose results are given instead, then attributes."""
from ask import Refused


def minimise(graph, kind_of, values_of):
    """`kind_of(graph)` says how it differs; `values_of(graph, names)` computes values by the reference."""
    kind = kind_of(graph)
    small = graph
    changed = True
    while changed:
        changed = False
        for candidate in candidates(small, values_of):
            if kind_of(candidate) == kind:
                small, changed = candidate, True
                break
    return small


def candidates(graph, values_of):
    if len(graph.outputs) > 1:
        for output in graph.outputs:
            alone = graph.copy()
            alone.outputs = [output]
            yield alone.without_unread()
    for node in graph.nodes[:-1]:
        for name in node[2]:
            if name in graph.outputs:
                continue
            found = values_of(graph, [name])
            if isinstance(found, Refused) or name not in found:
                continue
            given = graph.copy()
            given.nodes = [n for n in given.nodes if n[2] != node[2]]
            given.inputs[name] = found[name]
            yield given.without_unread()
    for i, node in enumerate(graph.nodes):
        for attribute in node[3]:
            plain = graph.copy()
            del plain.nodes[i][3][attribute]
            yield plain
    for name in graph.constants:
        given = graph.copy()
        given.inputs[name] = given.constants.pop(name)
        given.listed = [other for other in given.listed if other != name]
        yield given
    for name in graph.defaults:
        plain = graph.copy()
        del plain.defaults[name]
        yield plain
    for name in graph.listed:
        plain = graph.copy()
        plain.listed.remove(name)
        yield plain
