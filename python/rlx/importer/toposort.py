"""Orders nodes so that each comes after those whose values it reads; knows only names."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


class Cycle(Exception):
    """Nodes that wait for each other, as positions in the given list, in the order of the
    data and starting with the lowest."""

    def __init__(self, positions: list[int]) -> None:
        super().__init__(positions)
        self.positions = positions


def topological_order(reads: Sequence[Sequence[str]], producer: dict[str, int]) -> list[int]:
    """Positions in topological order, the given order kept wherever it can be.

    reads[i] are the names that node i needs; producer says which node makes a name, and
    lacks those that no node here makes. Raises Cycle.
    """
    makers = [{producer[name] for name in names if name in producer} for names in reads]
    if all(not made or max(made) < i for i, made in enumerate(makers)):
        return list(range(len(reads)))
    readers: list[list[int]] = [[] for _ in reads]
    for i, made in enumerate(makers):
        for maker in made:
            readers[maker].append(i)
    waiting = [len(made) for made in makers]
    ready = [i for i, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for reader in readers[i]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(ready, reader)
    if len(order) < len(reads):
        raise Cycle(_find_cycle(makers, set(range(len(reads))) - set(order)))
    return order


def _find_cycle(makers: list[set[int]], stuck: set[int]) -> list[int]:
    # Each stuck node waits for another stuck one, so walking back must meet itself.
    path: list[int] = []
    seen: dict[int, int] = {}
    node = min(stuck)
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = min(makers[node] & stuck)
    cycle = path[seen[node] :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]
