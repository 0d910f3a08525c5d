"""Weights, data and configs that are not there are named."""
import re
from pathlib import Path

from stepnet_mm.launch import inputs

ROOT = Path(__file__).resolve().parents[2]


def test_weights_and_data(report, tmp_path, monkeypatch, printed):
    monkeypatch.setenv('TORCH_HOME', str(tmp_path))
    inputs.check_weights(report)
    (tmp_path / 'hub/checkpoints').mkdir(parents=True)
    (tmp_path / 'hub/checkpoints/resnet50.pth').touch()
    inputs.check_weights(report)
    inputs.check_data(report, str(tmp_path / 'data'))
    inputs.check_data(report, str(tmp_path))
    lines = printed().splitlines()
    assert [line.split()[0] for line in lines] == [
        'warning', 'ok', 'warning', 'ok'
    ]
    assert 'resnet50.pth' in lines[1] and 'hub' in lines[3]


def test_a_config_whose_data_are_missing(report, printed, monkeypatch,
                                         tmp_path):
    monkeypatch.chdir(tmp_path)  # the checkout may have data
    inputs.check_config(
        report, str(ROOT / 'configs/faster_rcnn_r50_stepnet.py'))
    assert 'data/coco/annotations/instances_train2017.json' in printed()
    assert report.counts['error'] == 3


def test_the_data_of_each_split_are_looked_at(report, printed, tmp_path):
    for split in ('train', 'val', 'test'):
        path = tmp_path / f'{split}.py'
        path.write_text(
            f'{split}_dataloader = dict(dataset=dict('
            f"type='mmdet.CocoDataset', ann_file='{tmp_path}/nowhere'))")
        inputs.check_config(report, str(path))
        assert re.search(f'{split}_dataloader: .*nowhere', printed())
