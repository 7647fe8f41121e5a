"""The minimum cut against trying every choice."""

import itertools

import numpy as np
import pytest

from rlx.passes.cut import NO, YES, Cut


@pytest.mark.parametrize("seed", range(40))
def test_costs_least_of_all_choices_with_the_fewest_yes(seed):
    rng = np.random.default_rng(seed)
    cut = Cut()
    choices = [YES, NO, *(cut.choice() for _ in range(6))]
    pairs, groups = [], []
    for _ in range(rng.integers(1, 14)):
        a, b = (int(x) for x in rng.choice(choices, 2, replace=False))
        pairs.append((a, b, int(rng.integers(1, 9))))
        cut.costs(*pairs[-1])
    for _ in range(rng.integers(0, 4)):
        one, *others = (int(x) for x in rng.choice(choices, 3, replace=False))
        groups.append((one, others, int(rng.integers(1, 9))))
        cut.differs(*groups[-1])

    def cost(yes):
        split = sum(c for a, b, c in pairs if a in yes and b not in yes)
        for one, others, c in groups:
            differ = [(o in yes) != (one in yes) for o in others]
            split += c * any(differ)
        return split

    free = choices[2:]
    every = [{YES, *subset} for n in range(7) for subset in itertools.combinations(free, n)]
    found = cut.solve() & set(choices)
    least = min(map(cost, every))
    assert cost(found) == least
    assert len(found) == min(len(yes) for yes in every if cost(yes) == least)
