"""The random generators of a process: read, set, and seeded for a while."""
import random
from contextlib import contextmanager

import numpy as np
import torch


def get_random_state(cuda: bool = True) -> dict:
    """The states of Python's, numpy's and torch's global generators.

    Args:
        cuda (bool): whether the current GPU's generator is read too.

    Returns:
        dict: of ints, lists and CPU tensors only, so that a weights-only
        load takes it.
    """
    kind, keys, *rest = np.random.get_state()
    state = dict(
        python=random.getstate(),
        numpy=[kind, keys.tolist(), *rest],
        torch=torch.get_rng_state())
    if cuda and torch.cuda.is_available():
        state['cuda'] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: dict) -> None:
    """Set the generators to what :func:`get_random_state` gave."""
    version, internal, gauss = state['python']
    random.setstate((version, tuple(internal), gauss))
    kind, keys, *rest = state['numpy']
    np.random.set_state((kind, np.array(keys, np.uint32), *rest))
    torch.set_rng_state(state['torch'].cpu())
    if 'cuda' in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state['cuda'].cpu())


@contextmanager
def seeded(*entropy: int):
    """Seed the CPU's generators; they go on as before afterwards.

    ``torch.manual_seed`` would seed the GPU's as well, which a sample that
    is loaded in the training process must not touch.

    Args:
        *entropy (int): any number of non-negative integers.
    """
    before = get_random_state(cuda=False)
    words = np.random.SeedSequence(entropy).generate_state(4)
    try:
        random.seed(words.tobytes())
        np.random.seed(words)
        torch.default_generator.manual_seed(int(words.view(np.uint64)[0]))
        yield
    finally:
        set_random_state(before)
