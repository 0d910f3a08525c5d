"""A detector-free training run of seconds, for the hooks' tests."""
import json

import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, MODELS
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement
from torch.utils.data import Dataset


@DATASETS.register_module()
class ToyDataset(Dataset):
    """16 images of noise."""

    def __len__(self):
        return 16

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return dict(inputs=torch.randn(3, 32, 32, generator=generator))


@MODELS.register_module()
class ToyModel(BaseModel):
    """A backbone whose last map is drawn to 1."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone = MODELS.build(backbone)

    def forward(self, inputs, mode='loss'):
        last = self.backbone(torch.stack(list(inputs)))[-1]
        if mode == 'predict':
            return [BaseDataElement() for _ in inputs]
        return dict(loss=(last.mean((2, 3)) - 1).square().mean())


#: Settings of :func:`toy_runner` for a training that validates.
VALIDATION = dict(
    val_dataloader=dict(
        dataset=dict(type='ToyDataset'), batch_size=4, num_workers=0,
        sampler=dict(type='DefaultSampler', shuffle=False)),
    val_cfg=dict(), val_evaluator=[])


#: Two stages of 3 and 4 blocks, 2 and 3 of them measured.
BACKBONE = dict(type='mmpretrain.StepResNet', depth=34, base_channels=8,
                stem_channels=8, num_stages=2, strides=(1, 2),
                dilations=(1, 1), out_indices=(1, ))


def toy_runner(work_dir, hooks=(), iterations=8, backbone=BACKBONE, **kwargs):
    """A Runner over :class:`ToyModel` with the given hooks."""
    settings = dict(
        model=dict(type='ToyModel', backbone=backbone),
        work_dir=str(work_dir),
        train_dataloader=dict(
            dataset=dict(type='ToyDataset'), batch_size=4, num_workers=0,
            sampler=dict(type='InfiniteSampler', shuffle=True)),
        train_cfg=dict(by_epoch=False, max_iters=iterations),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=.01, momentum=.9)),
        custom_hooks=list(hooks),
        default_hooks=dict(
            logger=dict(type='LoggerHook', interval=5),
            checkpoint=dict(
                type='CheckpointHook', interval=iterations, by_epoch=False)),
        log_processor=dict(by_epoch=False),
        visualizer=dict(type='Visualizer', vis_backends=[
            dict(type='LocalVisBackend'), dict(type='TensorboardVisBackend')]),
        randomness=dict(seed=0), default_scope='mmengine', log_level='ERROR',
        experiment_name=f'toy_{Runner.__name__}_{next(_numbers)}')
    return Runner(**{**settings, **kwargs})


_numbers = iter(range(10**6))


def scalars(work_dir, name='stiffness'):
    """The rows that a run has logged to one of its files."""
    path, = work_dir.glob(f'*/vis_data/{name}.json')
    return [json.loads(line) for line in path.read_text().splitlines()]


def hook_count(model):
    """How many forward hooks and pre-hooks there are on its modules."""
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks)
               for m in model.modules())


#: As the wrapper of a model on CPUs.
DDP = dict(launcher='pytorch', cfg=Config(dict(model_wrapper_cfg=dict(
    type='MMDistributedDataParallel', device_ids=None))))
