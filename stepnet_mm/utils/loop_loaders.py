"""The data loaders of a loop."""
from torch.utils.data import DataLoader


def loop_loaders(loop) -> list[DataLoader]:
    """Its loaders; a loop of the user's may have several, or none.

    Args:
        loop (BaseLoop | dict | None): none are there yet in a config's dict.
    """
    found = getattr(loop, 'dataloader', None)
    loaders = found if isinstance(found, (list, tuple)) else [found]
    return [loader for loader in loaders if isinstance(loader, DataLoader)]
