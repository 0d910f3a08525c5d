"""Tells a user's code from that of the libraries."""
import sysconfig
import traceback

#: Beside what is installed; they may lie in folders of their own.
LIBRARIES = ('mmengine', 'mmcv', 'mmdet', 'mmpretrain', 'mmseg', 'stepnet_mm')


def functions_in(error: BaseException) -> set[str]:
    """The names of the functions that an error went through."""
    return {row.name for row in traceback.extract_tb(error.__traceback__)}


def is_of_user(error: BaseException) -> bool:
    """Whether an error went through code that is in no library."""
    installed = tuple(sysconfig.get_paths().values())
    return any(
        not frame.f_code.co_filename.startswith(('<', *installed))
        and not frame.f_globals['__name__'].startswith(LIBRARIES)
        for frame, _ in traceback.walk_tb(error.__traceback__))
