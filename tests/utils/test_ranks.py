import pytest

from stepnet_mm.utils.ranks import is_first_rank


@pytest.mark.parametrize('variables, first', [
    ({}, True),
    (dict(RANK='0'), True),
    (dict(RANK='1'), False),
    (dict(SLURM_PROCID='0'), True),
    (dict(SLURM_PROCID='3'), False),
    (dict(RANK='0', SLURM_PROCID='3'), True),  # torchrun inside srun
])
def test_before_there_is_a_process_group(monkeypatch, variables, first):
    for name in ('RANK', 'SLURM_PROCID'):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_first_rank() == first
