import pytest
from measurement import _settings_digest
from mmengine.config import Config


def digest(**changes):
    cfg = Config(dict(
        model=dict(type='A'),
        val_dataloader=dict(
            num_workers=2,
            dataset=dict(type='B', data_root='/here/coco', ann_file='a'))))
    cfg.merge_from_dict(changes)
    return _settings_digest(cfg, 'val')


@pytest.mark.parametrize('change', [
    {'model.type': 'C'}, {'data_preprocessor': dict(mean=1)},
    {'randomness.seed': 1}, {'val_dataloader.dataset.ann_file': 'b'},
    {'val_dataloader.dataset.data_root': '/here/other'},
    {'val_dataloader.collate_fn': dict(type='C')}])
def test_what_changes_a_measurement(change):
    assert digest(**change) != digest()


@pytest.mark.parametrize('change', [
    {'val_dataloader.num_workers': 0}, {'test_dataloader': dict()},
    {'val_dataloader.dataset.data_root': '/there/coco'}])
def test_what_does_not(change):
    assert digest(**change) == digest()
