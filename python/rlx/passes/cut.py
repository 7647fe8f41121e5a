"""Minimum cut: which yes-or-no choices cost least together."""

from __future__ import annotations

from collections import deque

YES, NO = 0, 1  # the two fixed choices, source and sink of the flow
FOREVER = 1 << 62


class Cut:
    """Choices 2.. are made with `choice`; costs are laid on pairs that differ."""

    def __init__(self):
        self.edges: list[list[int]] = [[], []]  # choice -> numbers of its edges
        self.to: list[int] = []
        self.room: list[int] = []               # edge i and i ^ 1 are each other's reverse

    def choice(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def costs(self, a: int, b: int, amount: int) -> None:
        """`amount` when a is YES and b is NO."""
        for start, end, room in ((a, b, amount), (b, a, 0)):
            self.edges[start].append(len(self.to))
            self.to.append(end)
            self.room.append(room)

    def differs(self, one: int, others: list[int], amount: int) -> None:
        """`amount` once, when any of `others` is NO under a YES of `one`, or the reverse."""
        down, up = self.choice(), self.choice()
        self.costs(one, down, amount)
        self.costs(up, one, amount)
        for other in others:
            self.costs(down, other, FOREVER)
            self.costs(other, up, FOREVER)

    def solve(self) -> set[int]:
        """The choices that are YES; as few as the least cost allows."""
        while True:
            level = self._levels()
            if NO not in level:
                return set(level)
            tried = [0] * len(self.edges)
            while self._push(level, tried):
                pass

    def _levels(self) -> dict[int, int]:
        level, queue = {YES: 0}, deque([YES])
        while queue:
            at = queue.popleft()
            for e in self.edges[at]:
                if self.room[e] > 0 and self.to[e] not in level:
                    level[self.to[e]] = level[at] + 1
                    queue.append(self.to[e])
        return level

    def _push(self, level: dict[int, int], tried: list[int]) -> bool:
        """Sends flow along one shortest path; False when there is none left."""
        path: list[int] = []
        at = YES
        while at != NO:
            step = self._step(at, level, tried)
            if step is not None:
                path.append(step)
                at = self.to[step]
            elif path:
                at = self.to[path.pop() ^ 1]
                tried[at] += 1
            else:
                return False
        amount = min(self.room[e] for e in path)
        for e in path:
            self.room[e] -= amount
            self.room[e ^ 1] += amount
        return True

    def _step(self, at: int, level: dict[int, int], tried: list[int]) -> int | None:
        edges = self.edges[at]
        while tried[at] < len(edges):
            e = edges[tried[at]]
            if self.room[e] > 0 and level.get(self.to[e]) == level[at] + 1:
                return e
            tried[at] += 1
        return None
