import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_records import make_attention_record
from torch import nn

from stepnet_mm.attention import (
    RelativeSelfAttention2d,
    attention_path,
    attention_record,
    mean_attention_distance,
    read_attention_histories,
    read_attention_history,
    read_attention_record,
    save_attention,
    uniform_attention_distance,
)


@pytest.mark.parametrize('size, step, kwargs', [
    ((3, 4), 1, dict(padding=(1, 0), crop=(0, 1))),
    ((3, 4), 1, dict(encoding=None, content=True, head_dim=2)),
    ((3, 4), 1, dict(encoding='absolute', content=True, max_size=8)),
    # Of larger maps so many queries at most.
    ((9, 10), 3, dict(padding=(1, 0), crop=(0, 1)))])
def test_distance_is_that_of_a_loop_over_all_pairs(size, step, kwargs,
                                                   monkeypatch):
    monkeypatch.setattr(attention_record, 'QUERIES', 12)
    layer = RelativeSelfAttention2d(4, num_heads=3, **kwargs).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=.5)
    x, pixel = torch.randn(2, 4, *size, dtype=torch.float64), (2., 3.)
    queries = [*itertools.product(
        *(range(0, side, step) for side in layer(x).shape[2:]))]
    want, uniform = torch.zeros(3, dtype=torch.float64), 0
    for i, j in queries:
        maps = layer.attention(x, (i, j)).mean(0)
        for k, m in itertools.product(*map(range, maps.shape[1:])):
            distance = math.hypot((k - i - layer.crop[0]) * pixel[0],
                                  (m - j - layer.crop[1]) * pixel[1])
            want += maps[:, k, m] * distance / len(queries)
            uniform += distance / maps[0].numel() / len(queries)
    torch.testing.assert_close(mean_attention_distance(layer, x, pixel), want)
    assert uniform == pytest.approx(
        uniform_attention_distance(layer, x, pixel))


def test_a_record_comes_back(tmp_path):
    record, path = make_attention_record(step=7), tmp_path / 'sub/a.npz'
    save_attention(record, path)
    found = read_attention_record(path)
    assert found.view == record.view and found.iteration == 7
    for layer, own in zip(found.layers, record.layers):
        np.testing.assert_array_equal(layer.maps, own.maps)
        assert layer.distance == own.distance
    assert [*path.parent.iterdir()] == [path]


def test_other_files_and_objects_in_one_are_refused(tmp_path):
    """For to unpickle objects may run anything."""
    save_attention(make_attention_record(), tmp_path / 'a.npz')
    whole = (tmp_path / 'a.npz').read_bytes()
    with np.load(tmp_path / 'a.npz') as arrays:
        content = dict(arrays)
    content['maps0'] = np.array([{}], object)
    np.savez(tmp_path / 'object.npz', **content)
    (tmp_path / 'cut.npz').write_bytes(whole[:len(whole) // 2])
    for name in ('object', 'cut'):
        with pytest.raises(ValueError, match=f'{name}.npz: expected an att'):
            read_attention_record(tmp_path / f'{name}.npz')


def test_a_resumed_run_goes_on_where_it_stood(tmp_path):
    for run, steps in dict(a=(0, 5, 10, 15), b=(10, 20), c=()).items():
        (tmp_path / run / 'attention').mkdir(parents=True)
        for step in steps:
            save_attention(
                replace(make_attention_record(step), name=run),
                attention_path(tmp_path / run, 'attention', step))
    save_attention(make_attention_record(3),
                   attention_path(tmp_path / 'b', 'my', 3))
    found = read_attention_history(tmp_path)
    assert [(r.iteration, r.name) for r in found] == [
        (0, 'a'), (5, 'a'), (10, 'b'), (20, 'b')]
    runs = read_attention_histories(tmp_path)
    assert {name: [r.iteration for r in some]
            for name, some in runs.items()} == {
                'attention': [0, 5, 10, 20], 'my': [3]}
    with pytest.raises(FileNotFoundError, match="got .'attention', 'my'.;"):
        read_attention_history(tmp_path, 'other')
