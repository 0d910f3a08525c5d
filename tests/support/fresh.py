"""A fork in which no mm library is imported yet: torch's seconds are saved."""
import sys

from forked import Forked

LIBRARIES = ('mmengine', 'mmcv', 'mmdet', 'mmpretrain', 'mmseg', 'mmrotate',
             'mmpose', 'stepnet_mm')


def printed_by(folder, function, *args) -> str:
    """Call a function in such a fork; it imports what it needs."""
    with Forked(folder, _call, function, args) as process:
        assert process.wait(100) == 0, process.printed('stderr')
        return process.printed()


def _call(function, args):
    for name in [*sys.modules]:
        if name.partition('.')[0] in LIBRARIES:
            del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not type(
        finder).__module__.startswith('stepnet_mm')]
    function(*args)
