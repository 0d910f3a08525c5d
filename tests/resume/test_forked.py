import ast
import gc
import os

from forked import Forked


class Loader:
    """Garbage with a finalizer that raises in a fork, as a data loader's."""

    def __init__(self):
        self.me = self
        self.owner = os.getpid()

    def __del__(self):
        assert os.getpid() == self.owner


def parse():
    gc.enable()
    ast.parse('x = [1, 2, f(3, y[4])]\n' * 3000)


def test_a_fork_leaves_the_garbage_of_its_parent_alone(tmp_path):
    gc.disable()
    try:
        for _ in range(100):
            Loader()
        with Forked(tmp_path, parse) as fork:
            assert fork.wait(60) == 0, fork.printed('stderr')
    finally:
        gc.enable()
