"""The data loaders of a loop."""
from torch.utils.data import DataLoader


def loop_loaders(loop) -> list[DataLoader]:
    """A loop's loaders: a user's may have several, a config's dict none."""
    found = getattr(loop, 'dataloader', None)
    loaders = found if isinstance(found, (list, tuple)) else [found]
    return [loader for loader in loaders if isinstance(loader, DataLoader)]
