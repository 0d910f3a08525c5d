"""A training of a minute with all that is hard to resume, for tests.

PYTHONPATH=tests/slurm:tests/resume \
  python tools/train.py tests/slurm/toy_config.py
"""
default_scope = 'mmengine'
custom_imports = dict(
    imports=['stepnet_mm', 'resume_run', 'toy_parts'],
    allow_failed_imports=False)
model = dict(type='DropoutModel')
train_dataloader = dict(
    dataset=dict(type='AugmentedDataset', size=100), batch_size=4,
    sampler=dict(type='DefaultSampler', shuffle=True),
    num_workers=1, persistent_workers=True)
optim_wrapper = dict(optimizer=dict(type='SGD', lr=.01, momentum=.9))
param_scheduler = [
    dict(type='LinearLR', start_factor=.1, end=50, by_epoch=False),
    dict(type='StepLR', step_size=2, gamma=.9, by_epoch=True)]
train_cfg = dict(by_epoch=True, max_epochs=4)
default_hooks = dict(
    logger=dict(type='LoggerHook', interval=5),
    checkpoint=dict(
        type='CheckpointHook', interval=5, by_epoch=False, max_keep_ckpts=2))
custom_hooks = [dict(type='EMAHook', momentum=.01)]
randomness = dict(seed=3)
env_cfg = dict(dist_cfg=dict(timeout=60))
