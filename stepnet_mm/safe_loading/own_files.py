"""Names of files in a training state; a checkpoint hook deletes the files."""
import os.path as osp
import re

from .config_text import at

#: Names of the best checkpoints, and of the one saved at a preemption.
_BEST = re.compile(r'best_.+')
_TEMPORARY = re.compile(r'preempted_iter_\d+\.pth')


def keep_own_files(checkpoint, folder: str) -> None:
    """Keep the names of one folder's files alone.

    Args:
        checkpoint: what was loaded; ``message_hub.runtime_info`` is changed in
            place.
        folder (str): a path or a URL.
    """
    info = at(checkpoint, ('message_hub', 'runtime_info'))
    if not isinstance(info, dict):
        return
    for key, value in list(info.items()):
        if key == 'keep_ckpt_ids':
            info[key] = [number for number in value if type(number) is int
                         ] if isinstance(value, (list, tuple)) else []
        elif key == 'temporary_ckpt':  # without its folder
            own = _own(value, folder, _TEMPORARY)
            info[key] = own and osp.basename(own)
        elif str(key).startswith('best_ckpt'):
            info[key] = _own(value, folder, _BEST)


def _own(path, folder: str, names: re.Pattern) -> str | None:
    """The path of a folder's file of that name; None if there is none."""
    name = osp.basename(path) if isinstance(path, str) else ''
    own = osp.join(folder, name)
    # A FlexibleRunner's checkpoints are folders.
    there = '://' in folder or osp.isfile(own) or (
        osp.isdir(own) and name.endswith('.pth'))
    return own if names.fullmatch(name) and there else None
