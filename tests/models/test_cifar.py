import pytest

from stepnet_mm.models.cifar import cifar_stage_blocks


@pytest.mark.parametrize('depth, block, n', [
    (164, 'bottleneck', 18), (11, 'bottleneck', 1), (20, 'bottleneck', 2),
    (20, 'basic', 3)])
def test_blocks_a_stage(depth, block, n):
    assert cifar_stage_blocks(depth, block) == (n, n, n)


@pytest.mark.parametrize('depth, block, key', [
    (163, 'bottleneck', 'depth: .*9n'), (2, 'bottleneck', 'depth: .*9n'),
    (29, 'basic', 'depth: .*6n'), (-7, 'bottleneck', 'depth: .*9n'),
    (20., 'basic', 'depth: .*6n'), (20, 'wide', "block: .*'wide'")])
def test_wrong_arguments(depth, block, key):
    with pytest.raises(ValueError, match=key):
        cifar_stage_blocks(depth, block)
