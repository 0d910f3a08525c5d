"""What the fuzzes draw their cases with."""
from hypothesis import HealthCheck, seed, settings


def bounded(count):
    """The same cases on every run, and as many."""
    return lambda test: seed(0)(settings(
        max_examples=count, deadline=None, database=None,
        suppress_health_check=list(HealthCheck))(test))


def places(tree):
    """Each dict or list inside, with each of its keys."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], (dict, list)):
            yield from places(tree[key])
