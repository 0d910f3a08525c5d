"""The states of Python's, numpy's and torch's random generators."""
import random

import numpy as np
import torch


def get_random_state() -> dict:
    """The states of all random generators, those of the current GPU too.

    Of types which a weights-only load accepts.
    """
    kind, keys, *rest = np.random.get_state()
    state = dict(python=random.getstate(), torch=torch.get_rng_state(),
                 numpy=[kind, np.asarray(keys).tolist(), *rest])
    if torch.cuda.is_available():
        state['cuda'] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: dict) -> None:
    """Set the generators to a state of :func:`get_random_state`."""
    version, internal, gauss = state['python']
    random.setstate((version, tuple(internal), gauss))
    kind, keys, *rest = state['numpy']
    np.random.set_state((kind, np.array(keys, np.uint32), *rest))
    torch.set_rng_state(state['torch'].cpu())
    if 'cuda' in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state['cuda'].cpu())


def seed_generators(*entropy: int) -> None:
    """Seed the CPU's generators from non-negative integers.

    ``torch.manual_seed`` would seed the GPU's as well, which a sample that
    is loaded in the training process must not touch.
    """
    words = np.random.SeedSequence(entropy).generate_state(4)
    random.seed(words.tobytes())
    np.random.seed(words)
    torch.default_generator.manual_seed(int(words.view(np.uint64)[0]))


class seeded:
    """A block with generators seeded by :func:`seed_generators`.

    The global ones stay as they are. A second block ``with`` the same goes on
    where the first ended.
    """

    def __init__(self, *entropy: int):
        self._entropy = entropy
        self._own: tuple = ()

    def __enter__(self):
        self._outer = _states()
        if self._own:
            _restore(self._own)
        else:
            seed_generators(*self._entropy)

    def __exit__(self, *_):
        self._own = _states()
        _restore(self._outer)


def _states() -> tuple:
    return random.getstate(), np.random.get_state(), torch.get_rng_state()


def _restore(states: tuple) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
