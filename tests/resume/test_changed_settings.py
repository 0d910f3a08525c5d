from types import SimpleNamespace

import pytest

from stepnet_mm.resume.changed_settings import changed_settings


def nested(content, part, times):
    for _ in range(times):
        content = part(content)
    return content


@pytest.mark.parametrize('value', [
    nested(0, lambda inner: [inner, inner], 40),
    nested(0, lambda inner: [inner], 10**5)], ids=['shared', 'deep'])
def test_a_list_without_end_is_named_in_short(value):
    runner = SimpleNamespace(
        optim_wrapper=SimpleNamespace(
            state_dict=lambda: dict(param_groups=[dict(lr=.1)] * 2)),
        param_schedulers=[SimpleNamespace(state_dict=lambda: dict(gamma=.5))])
    line, scheduler = changed_settings(runner, dict(
        optimizer=dict(param_groups=[dict(lr=value), dict(lr=list(value))]),
        param_schedulers=[dict(gamma=value)]))
    assert line.startswith('optimizer.lr goes on as [')
    assert scheduler.startswith('param_scheduler[0].gamma goes on as [')
    assert len(line) < 10**4
