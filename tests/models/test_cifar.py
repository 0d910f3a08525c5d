import pytest

from stepnet_mm.models.cifar import cifar_stage_blocks

pytestmark = pytest.mark.core


@pytest.mark.parametrize('depth, block, n', [
    (164, 'bottleneck', 18), (29, 'bottleneck', 3), (11, 'bottleneck', 1),
    (20, 'bottleneck', 2), (20, 'basic', 3), (110, 'basic', 18)])
def test_blocks_a_stage(depth, block, n):
    assert cifar_stage_blocks(depth, block) == (n, n, n)


@pytest.mark.parametrize('depth, block', [
    (163, 'bottleneck'), (2, 'bottleneck'), (29, 'basic'), (2, 'basic'),
    (-7, 'bottleneck'), ('20', 'basic'), (20., 'basic')])
def test_wrong_depth(depth, block):
    with pytest.raises(ValueError, match=r'depth: expected [69]n\+2.*got'):
        cifar_stage_blocks(depth, block)


def test_wrong_block():
    with pytest.raises(ValueError, match="block: .*'basic'.*got 'wide'"):
        cifar_stage_blocks(20, 'wide')
