from collections import Counter
from types import SimpleNamespace

from stepnet_mm.hooks import BrokenImageHook
from stepnet_mm.hooks import broken_image_hook as module


def test_images_on_all_ranks(monkeypatch):
    monkeypatch.setattr(module, 'broken_images', lambda: Counter({'a.jpg': 1}))
    monkeypatch.setattr(module.dist, 'all_gather_object',
                        lambda counts: [counts, Counter({'b.jpg': 2})])
    said = []
    runner = SimpleNamespace(logger=SimpleNamespace(warning=said.append))
    hook = BrokenImageHook()
    for _ in range(2):
        hook.after_train_epoch(runner)
    line, = said
    assert line.endswith(', 3 times in all: a.jpg (1x), b.jpg (2x)')
