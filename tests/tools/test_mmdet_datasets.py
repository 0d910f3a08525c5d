"""Datasets and loaders that mmdet trains on: ours trains on them too."""
import json

from mmengine.registry import LOOPS
from mmengine.runner import ValLoop


@LOOPS.register_module()
class EachLoop(ValLoop):
    """Validates on several datasets."""

    def __init__(self, runner, dataloader, evaluator):
        super().__init__(runner, dataloader[0], evaluator)
        self.dataloader = [runner.build_dataloader(part)
                           for part in dataloader]

    def run(self):
        loaders = self.dataloader
        for self.dataloader in loaders:
            metrics = super().run()
        return metrics


def test_unlabelled_parts_lists_of_loaders_and_best_alone(
        tool, detector, tmp_path):
    labels = tmp_path / 'data/annotations/instances_train2017.json'
    content = json.loads(labels.read_text())
    content.pop('annotations')
    labels.with_name('none.json').write_text(json.dumps(content))
    path = tmp_path / 'small.py'
    path.write_text(f"_base_ = '{detector}'" + '''
train_cfg = dict(max_iters=1, val_interval=1)
part = dict(type='CocoDataset', data_root=_base_.dataset['data_root'],
            metainfo={{_base_.metainfo}}, data_prefix=dict(img='train2017/'),
            pipeline={{_base_.train_pipeline}})
train_dataloader = dict(dataset=dict(_delete_=True, type='ConcatDataset',
    datasets=[dict(part, ann_file=f'annotations/{name}.json')
              for name in ('none', 'instances_train2017')]))
part = dict(batch_size=2, num_workers=0, persistent_workers=False,
            sampler=dict(type='DefaultSampler', shuffle=False),
            dataset=dict(part, data_prefix=dict(img='val2017/'),
                         pipeline={{_base_.test_pipeline}}, test_mode=True,
                         ann_file='annotations/instances_val2017.json'))
val_dataloader = [part, part]
val_cfg = dict(type='EachLoop')
default_hooks = dict(checkpoint=dict(interval=-1, save_best='coco/bbox_mAP',
                                     rule='greater'))
''')
    tool('train', path, '--work-dir', tmp_path / 'ours')
    assert list((tmp_path / 'ours').glob('best*'))
