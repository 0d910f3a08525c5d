from collections import Counter
from types import SimpleNamespace

import pytest
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from stepnet_mm import config as C
from stepnet_mm.datasets import make_mini_coco
from stepnet_mm.datasets.broken_images import broken_images
from stepnet_mm.hooks import BrokenImageHook
from stepnet_mm.hooks import broken_image_hook as module

pytest.importorskip('mmdet')


@pytest.mark.long
def test_a_cut_off_image_is_skipped_counted_and_named(tmp_path, monkeypatch,
                                                      request):
    monkeypatch.chdir(request.config.rootpath)
    make_mini_coco(tmp_path, train=8, val=3, size=64)
    broken = tmp_path / 'train2017' / f'{5:012d}.jpg'
    broken.write_bytes(broken.read_bytes()[:-200])
    cfg = C.load_config('configs/faster_rcnn_r34_stepnet_mini_coco.py',
                        str(tmp_path / 'work'))
    C.set_data_root(cfg, str(tmp_path))
    C.set_image_scale(cfg, (64, 64))
    cfg.model.backbone.update(depth=18, base_channels=8, stem_channels=8)
    cfg.model.neck.in_channels = [8, 16, 32, 64]
    cfg.train_cfg.update(max_iters=4, val_interval=100)  # each image once
    cfg.train_dataloader.batch_size = 2
    cfg.log_level = 'WARNING'
    runner = Runner.from_cfg(cfg)
    said = []
    monkeypatch.setattr(runner.logger, 'warning', said.append)
    runner.train()
    assert runner.iter == 4
    count = broken_images()[str(broken)]
    assert count >= 1
    line, = [line for line in said if 'unreadable' in line]
    assert line.startswith('1 unreadable images')
    assert f'{broken} ({count}x)' in line


def test_an_evaluation_names_a_broken_image(monkeypatch):
    named, hook = [], BrokenImageHook()
    monkeypatch.setattr(module, 'name_broken_images', named.append)
    runner = SimpleNamespace(**{
        f'{name}_loop': SimpleNamespace(dataloader=[DataLoader([name])])
        for name in ('val', 'test')})
    hook.before_val(runner)
    hook.before_test(runner)
    assert named == [['val'], ['test']]


def test_images_of_this_training_on_all_ranks(monkeypatch):
    own = Counter({'earlier.jpg': 3})
    monkeypatch.setattr(module, 'broken_images', lambda: own.copy())
    monkeypatch.setattr(module.dist, 'all_gather_object',
                        lambda counts: [counts, Counter({'b.jpg': 2})])
    said = []
    runner = SimpleNamespace(logger=SimpleNamespace(warning=said.append))
    hook = BrokenImageHook()
    hook.before_train(runner)
    own.update(['a.jpg'])
    for _ in range(2):
        hook.after_train_epoch(runner)
    line, = said
    assert line.endswith(', 3 times in all: a.jpg (1x), b.jpg (2x)')
