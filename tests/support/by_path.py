"""Modules of files that are on no path, as tests/ and tools/ are."""
import importlib.util
from pathlib import Path


def load(path: Path):
    """The module of a file, run anew."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
