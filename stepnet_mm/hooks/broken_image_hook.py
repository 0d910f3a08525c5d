"""Counts and reports the broken images that training skipped."""
from collections import Counter

from mmengine import dist
from mmengine.hooks import Hook
from mmengine.registry import HOOKS

from ..datasets.broken_images import broken_images
from ..utils.data_errors import in_a_line, name_samples
from ..utils.hook_helpers import loop_loaders


@HOOKS.register_module()
class BrokenImageHook(Hook):
    """Log how many broken images were skipped, and which.

    ``LoadIntactImageFromFile`` (datasets/broken_images.py) skips them in the
    worker processes, or gives up; this gathers the counts after every epoch
    (in a training by iterations, at its end). Validation and test stop at
    one, with an error that names it.

    Examples:
        >>> custom_hooks = [dict(type='BrokenImageHook')]
    """
    priority = 'LOW'

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def before_val(self, runner) -> None:
        """Have the validation name a file that cannot be loaded."""
        for loader in loop_loaders(runner.val_loop):
            name_samples(loader, 'val_dataloader')

    def before_test(self, runner) -> None:
        """Have the test name a file that cannot be loaded."""
        for loader in loop_loaders(runner.test_loop):
            name_samples(loader, 'test_dataloader')

    def after_train_epoch(self, runner, metrics=None) -> None:
        """Report the images skipped so far, where there are further ones."""
        own = broken_images()
        counts: Counter[str] = sum(dist.all_gather_object(own), Counter())
        if counts != self._seen:
            self._seen = counts
            named = ', '.join(f'{in_a_line(path)} ({n}x)'
                              for path, n in sorted(counts.items()))
            runner.logger.warning(
                f'{len(counts)} broken images were skipped in training '
                f'so far, {sum(counts.values())} times in all: {named}')
