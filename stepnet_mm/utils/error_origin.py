"""Whether an error is of a user's code or a library's, by its traceback."""
import os
import re
import sys
import traceback

LIBRARIES = ('mmengine', 'mmcv', 'mmdet', 'mmpretrain', 'mmseg', 'mmpose',
             'mmrotate', 'stepnet_mm', 'torch', 'torchvision', 'numpy', 'cv2',
             'PIL', 'scipy', 'pycocotools', 'addict', 'einops', 'lvis',
             'matplotlib', 'panopticapi', 'shapely', 'timm', 'transformers')
_STDLIB = os.path.dirname(os.__file__)


def functions_in(error: BaseException) -> set[str]:
    """The names of the functions that an error went through."""
    return {row.name for row in traceback.extract_tb(error.__traceback__)}


def is_of_user(error: BaseException) -> bool:
    """Whether an error went through code that is in no library."""
    # As text, for a loader's worker sends its traceback so.
    text = ''.join(traceback.format_exception(error))
    files = re.findall(r'File "(.+?)", line \d+, in ', text)
    return not all(map(_is_of_library, files))


def _is_of_library(file: str) -> bool:
    paths = (getattr(sys.modules.get(name), '__file__', None)
             for name in LIBRARIES)
    folders = [os.path.join(os.path.dirname(path), '')
               for path in paths if path]
    # What is installed may lie in a folder of the standard library.
    return file.startswith(('<', *folders)) or (
        file.startswith(_STDLIB) and '-packages' not in file)
