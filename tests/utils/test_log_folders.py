"""The order of a training's starts, whatever their clocks said."""
import json

import pytest

from stepnet_mm.utils.log_folders import log_folders

LINE = '2026/11/29 09:48:42 - mmengine - INFO - '


def begin(work_dir, name, steps, resumed=None, log=True):
    """The folder of a start, as mmengine leaves it after a kill."""
    vis_data = work_dir / name / 'vis_data'
    vis_data.mkdir(parents=True)
    text = f'{LINE}resumed epoch: 0, iter: {resumed}\n' if resumed else ''
    if log:
        (work_dir / name / f'{name}.log').write_text(
            f'{text}{LINE}Iter(train) [10/90]\r\n')
    for file in (name, 'scalars') if steps else ():
        (vis_data / f'{file}.json').write_text(''.join(
            json.dumps(dict(loss=.5, iter=step, step=step)) + '\r\n'
            for step in steps) + '{"accuracy/top1": 1., "step": 2}\n'
                                              '{"iter": 900')
    (vis_data / 'stiffness.json').write_text(f'{{"step": {resumed}}}\n')


@pytest.mark.parametrize('starts', [
    # Begun in Tokyo, resumed by the time of UTC, and again in between.
    dict(e=([10, 20], ), a=([20, 30], 16), c=([40, 50], 38)),
    # Resumed before anything was logged behind what the first one logged.
    dict(e=([10], ), a=([10, 20, 30], 8)),
    # Saved behind the last place that was logged; the log of none is there.
    dict(e=([10, 23], None, False), a=([36, 49], None, False)),
    dict(e=([10], None, False), a=([20, 30], None, False)),
    # Killed before the next checkpoint, so resumed from the same one.
    dict(a=([10, 20], ), e=([17, 18], 16), b=([20, 30], 16)),
    dict(e=([10, 20], ), c=([17, 18], 16), b=([20, 30], 16), a=([40], 38)),
    # Preempted before it logged an iteration.
    dict(a=([], ), b=([10, 20], 8), c=([10, 20, 30], )),
    # Begun anew: by name, with what resumed it.
    dict(a=([10, 20], ), b=([20, 30, 40], 16), c=([10, 20], ),
         d=([20, 30], 16)),
    dict(a=([10, 20, 30], ), b=([10], )),
    # Resumed from an older checkpoint: by name.
    dict(a=([10, 20], ), b=([30, 40], 20), c=([20, 30], 10)),
    # Starts that logged nothing, and folders of other things.
    dict(a=([], ), b=([10], ), c=([], None, False))])
def test_starts_are_in_the_order_of_what_they_trained(tmp_path, starts):
    work_dir = tmp_path / 'a run [1] 运行'
    for name, start in starts.items():
        begin(work_dir, name, *start)
    (work_dir / 'last_checkpoint').touch()
    assert [folder.name for folder in log_folders(work_dir)
            if folder.is_dir()] == [*starts]
