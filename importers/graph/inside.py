"""The values inside manual computations."""

from __future__ import annotations

from .graph import Graph, Instance

Inside = tuple[tuple[str, int], ...]


def values_inside(graph: Graph) -> dict[int, Inside]:
    """The axes that are manual where a value is, by place, outermost first, each with the item of its
    manual computation. Places outside of manual computations are left out."""
    by_place: dict[int, Inside] = {}
    called: dict[int, Inside] = {}  # instance -> what its call is inside of
    for instance in graph.instances:
        function, outside = instance.function, called.get(instance.number, ())
        if not outside and not function.manual_axes:
            continue
        inside = _Inside(instance, outside)
        called |= {
            child.number: inside.of(function.parent[node]) for node, child in instance.children.items()
        }
        regions = ((node, region) for node, regions in function.regions.items() for region in regions)
        around = dict.fromkeys(function.arguments, -1)
        around |= {value: node for node, region in regions for value in region.arguments}
        around |= {v: function.parent[node] for v, node in enumerate(function.definer) if node >= 0}
        by_place |= {instance.place + v: axes for v, node in around.items() if (axes := inside.of(node))}
    return by_place


class _Inside:
    def __init__(self, instance: Instance, outside: Inside) -> None:
        self.instance, self.by_node = instance, {-1: outside}

    def of(self, node: int) -> Inside:
        """The manual axes in the regions of a node."""
        if node not in self.by_node:
            function = self.instance.function
            own = ((axis, self.instance.item + node) for axis in function.manual_axes.get(node, ()))
            self.by_node[node] = (*self.of(function.parent[node]), *own)
        return self.by_node[node]
