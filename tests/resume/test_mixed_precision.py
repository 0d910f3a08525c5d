"""Automatic mixed precision as mmengine has it, on a CPU's autocast."""
import functools

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.optim.optimizer import amp_optimizer_wrapper
from toy_run import toy_runner

pytestmark = [
    pytest.mark.core,
    pytest.mark.since_torch('2.3', 'a loss scale on a CPU')
]
pytest.importorskip('mmpretrain')


class OverflowHook(Hook):
    """An infinite loss in the second iteration, which changes no weight."""
    priority = 'LOWEST'

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == 1:
            self.before = [p.detach().clone()
                           for p in runner.model.parameters()]
            data_batch['inputs'][0].fill_(torch.inf)

    def after_train_iter(self, runner, *args, **kwargs):
        if runner.iter == 1:
            assert all(map(torch.equal, self.before,
                           runner.model.parameters()))


def amp_runner(folder, iterations, **kwargs):
    return toy_runner(
        folder, [dict(type='NonFiniteLossHook'), dict(type=OverflowHook)],
        iterations,
        train_cfg=dict(type='ResumableIterBasedTrainLoop',
                       max_iters=iterations),
        optim_wrapper=dict(
            type='AmpOptimWrapper', dtype='bfloat16',
            loss_scale=dict(init_scale=1024., growth_interval=2),
            optimizer=dict(type='SGD', lr=.01, momentum=.9)),
        default_hooks=dict(checkpoint=dict(
            type='AtomicCheckpointHook', interval=3, by_epoch=False)),
        **kwargs)


def test_a_skipped_batch_and_a_resume_keep_the_loss_scale(tmp_path,
                                                          monkeypatch):
    """Weights, moments and averages are saved in float32."""
    monkeypatch.setattr(amp_optimizer_wrapper, 'is_cuda_available',
                        lambda: True)
    monkeypatch.setattr(amp_optimizer_wrapper, 'GradScaler',
                        functools.partial(torch.amp.GradScaler, 'cpu'))
    whole = amp_runner(tmp_path / 'whole', 6)
    whole.train()
    amp_runner(tmp_path / 'parts', 3).train()
    saved = torch.load(tmp_path / 'parts' / 'iter_3.pth', weights_only=False)
    scaler = saved['optimizer']['loss_scaler']
    # Two updates.
    assert scaler['scale'] == 2048 and scaler['_growth_tracker'] == 0
    tensors = [*saved['state_dict'].values(), *(
        s['momentum_buffer'] for s in saved['optimizer']['state'].values())]
    assert {t.dtype for t in tensors if t.is_floating_point()} == {
        torch.float32}
    resumed = amp_runner(tmp_path / 'parts', 6, resume=True)
    resumed.train()
    assert (resumed.optim_wrapper.loss_scaler.get_scale()
            == whole.optim_wrapper.loss_scaler.get_scale() > 2048)
    for a, b in zip(whole.model.state_dict().values(),
                    resumed.model.state_dict().values(), strict=True):
        assert torch.equal(a, b)
