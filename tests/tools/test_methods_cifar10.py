import json

import pytest

pytestmark = pytest.mark.core


@pytest.fixture
def methods(load_tool):
    return load_tool('benchmarks/methods_cifar10')


def test_the_subset_is_spread_over_all_classes(methods):
    indices = json.loads(methods.spread_indices(5))
    assert len(indices) == 10000
    for label in range(10):  # folders come sorted, 5,000 images a class
        assert sum(i // 5000 == label for i in indices) == 1000


@pytest.mark.parametrize('last, finite', [(1., True), (float('nan'), False)])
def test_summary(methods, tmp_path, last, finite):
    records = [
        dict(epoch=1, loss=3.), dict(epoch=1, loss=2.),
        {'accuracy/top1': 40.}, dict(epoch=2, loss=last),
        {'accuracy/top1': 30.}
    ]
    folder = tmp_path / '20261121' / 'vis_data'
    folder.mkdir(parents=True)
    (folder / 'scalars.json').write_text('\n'.join(map(json.dumps, records)))
    found = methods.summary(tmp_path)
    assert found['first'] == 2.5 and found['finite'] == finite
    assert (found['top1'], found['best']) == (30., 40.)
