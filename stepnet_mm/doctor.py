"""Says whether this machine and environment are fit to train with.

python -m stepnet_mm.doctor [--config CONFIG] [--work-dir DIR]

Each line begins with ok, warning or error and ends with what to do. The exit
code is 1 if there was an error. A tiny StepNet of each library trains for a
few seconds; else nothing is changed and nothing downloaded.
"""
import argparse
import contextlib
import importlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata

from . import supported

#: Import name -> its distributions, the maintained one first.
LIBRARIES = {
    'mmengine': ('onedl-mmengine', 'mmengine'),
    'mmcv': ('onedl-mmcv', 'mmcv', 'mmcv-lite'),
    'mmdet': ('onedl-mmdetection', 'mmdet'),
    'mmpretrain': ('onedl-mmpretrain', 'mmpretrain')
}
#: Pairs that are known not to go together: what, the condition, what to do.
#: Each condition gets the versions by import name, as tuples of numbers.
CONFLICTS = [
    ('mmengine 0.10.7 alone cannot load its own checkpoints with torch >= 2.6',
     lambda v: v['mmengine'] <= (0, 10, 7) and v['torch'] >= (2, 6),
     "nothing, stepnet_mm's loader does; other tools need onedl-mmengine"),
    ('numpy 2 with mmcv 2.1 or mmdet 3.3',
     lambda v: v['numpy'] >= (2, ) and v['mmcv'] < (2, 2),
     'install numpy < 2, or the onedl stack'),
    ('mmcv 2.2 or later with mmdet 3.3, which refuses it',
     lambda v: v['mmcv'] >= (2, 2) and v['mmdet'] < (3, 4),
     'install mmcv 2.1, or onedl-mmdetection'),
]


class Report:
    """Prints its lines and counts them by level."""

    def __init__(self):
        self.counts = dict(ok=0, warning=0, error=0)

    def add(self, level: str, what: str, todo: str = '') -> None:
        self.counts[level] += 1
        print(f'{level:<8} {what}{f": {todo}" if todo else ""}')

    def ok(self, what: str) -> None:
        self.add('ok', what)

    def warn(self, what: str, todo: str) -> None:
        self.add('warning', what, todo)

    def error(self, what: str, todo: str) -> None:
        self.add('error', what, todo)


def numbers(version: str) -> tuple:
    """'2.11.0+cu130' -> (2, 11, 0)."""
    return tuple(map(int, re.findall(r'\d+', version.partition('+')[0])[:3]))


def distributions(names: tuple) -> dict:
    """The versions of those that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return found


def python_version() -> str:
    return '.'.join(map(str, sys.version_info[:3]))


def check_python(report: Report) -> None:
    least, limit = supported.PYTHON
    version = python_version()
    if numbers(least) <= numbers(version) < numbers(limit):
        report.ok(f'Python {version}')
    else:
        report.warn(f'Python {version}', f'{least} or later, before {limit}, '
                    'is what the libraries and this package go with')


def check_versions(report: Report) -> dict:
    """Versions by import name; what is missing or does not go together."""
    versions = {}
    for name in ('torch', 'torchvision', 'numpy', 'pycocotools'):
        _add_version(report, versions, name, distributions((name, )))
    for name, known in LIBRARIES.items():
        found = distributions(known)
        if len(found) > 1:
            report.error(
                f'{name} is installed from {" and ".join(found)}, one over '
                'the other', f'pip uninstall {" ".join(found)}, then install '
                'one of them')
        _add_version(report, versions, name, found)
    if not {'mmdet', 'mmpretrain'} & set(versions):
        report.error('neither mmdet nor mmpretrain is installed',
                     'install one of them: bash tools/setup_env.sh')
    for what, applies, todo in CONFLICTS:
        try:
            if applies({k: numbers(v) for k, v in versions.items()}):
                report.warn(what, todo)
        except KeyError:
            pass  # one of the two is not there
    return versions


def _add_version(report, versions, name, found) -> None:
    optional = name in ('mmdet', 'mmpretrain', 'torchvision', 'pycocotools')
    if not found:
        (report.warn if optional else report.error)(
            f'{name} is not installed', 'bash tools/setup_env.sh installs a '
            'stack that was tried')
        return
    distribution, version = next(iter(found.items()))
    versions[name] = version
    needed = supported.LEAST.get(name, '0')
    if numbers(version) < numbers(needed):
        report.error(f'{distribution} {version}', f'install >= {needed}')
    else:
        report.ok(f'{distribution} {version}')


def check_tried(report: Report, versions: dict) -> None:
    """Whether the package was tried in this environment."""
    different = supported.differences(python_version(), versions)
    nearest = min(different, key=lambda name: len(different[name]))
    if different[nearest]:
        report.warn(
            'not an environment that was tried; nearest is '
            f'STACK={nearest}, but for {", ".join(different[nearest])}',
            'nothing, if a StepResNet trains here (below)')
    else:
        report.ok(f'an environment that was tried: STACK={nearest}')


def check_imports(report: Report) -> None:
    """Each library imports, mmcv has its operators."""
    for name in ('torch', *LIBRARIES, 'stepnet_mm'):
        if importlib.util.find_spec(name) is None:
            continue
        error = _import_error(name)
        if error:
            report.error(f'{name} does not import ({error})',
                         'reinstall it; versions as in README, "Which stack"')
    if importlib.util.find_spec('mmcv') is None:
        return
    error = _import_error('mmcv.ops')
    if error:
        report.error(
            f'mmcv has no compiled operators ({error})',
            'detectors need them: bash tools/setup_env.sh compiles them; '
            'classification does without')
        return
    ops = importlib.import_module('mmcv.ops')
    torch = importlib.import_module('torch')
    if (torch.cuda.is_available()
            and ops.get_compiling_cuda_version() == 'not available'):
        report.error('mmcv.ops: compiled for the CPU only, on a machine with '
                     'GPUs', 'compile mmcv there: bash tools/setup_env.sh')
    else:
        report.ok('mmcv.ops: compiled operators')


def _import_error(name: str) -> str:
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # some print
            importlib.import_module(name)
        return ''
    except BaseException as error:  # a library may even exit
        return f'{type(error).__name__}: {error}'.replace('\n', ' ')


def check_registries(report: Report) -> list:
    """What the package registers is found from each library's scope.

    Returns:
        list[str]: the libraries that have StepResNet.
    """
    for name in ('AtomicCheckpointHook', 'PreemptionHook', 'TNSHook'):
        _check_registered(report, 'mmengine', 'HOOKS', name)
    found = [library for library in ('mmdet', 'mmpretrain')
             if importlib.util.find_spec(library) is not None
             and _check_registered(report, library, 'MODELS', 'StepResNet')]
    for library in found:
        report.ok(f'scope {library}: StepResNet, StepAdaptor, hooks')
    return found


def _check_registered(report, library: str, kind: str, name: str) -> bool:
    """Whether a registry of a library gives what is ours."""
    try:
        registries = importlib.import_module(f'{library}.registry')
        found = getattr(registries, kind).get(name)
        if found is not None and found.__module__.startswith('stepnet_mm'):
            return True
        why = f'got {found}'
    except Exception as error:
        why = f'{type(error).__name__}: {error}'.replace('\n', ' ')
    report.error(f'scope {library}: no {name} of stepnet_mm ({why})',
                 f'try: python -c "import stepnet_mm, {library}.registry"')
    return False


def check_training(report: Report, library: str) -> None:
    """A tiny StepNet trains, is saved, loaded and resumed."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), (
                tempfile.TemporaryDirectory()) as folder:
            trial = importlib.import_module('stepnet_mm.launch.trial')
            trial.try_training(library, folder)
        report.ok(f'{library}: a tiny StepResNet trains, is saved, loaded and '
                  'resumed bit for bit')
    except Exception as error:
        why = f'{type(error).__name__}: {error}'.replace('\n', ' ')
        report.error(
            f'{library}: no training of a tiny StepResNet ({why})',
            'README, "Which stack", has environments that work; please '
            'report this one, with these lines, as an issue')


def check_devices(report: Report) -> None:
    torch = importlib.import_module('torch')
    if not torch.cuda.is_available():
        driver = shutil.which('nvidia-smi')
        if driver:
            report.error(
                f'an NVIDIA driver, but torch {torch.__version__} sees no GPU',
                'is it a CPU build, is CUDA_VISIBLE_DEVICES empty, or the '
                f'driver older than CUDA {torch.version.cuda} needs?')
        else:
            report.warn('no GPU', 'training runs on CPU, with gloo')
        return
    for i in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(i)
        arch = f'sm_{properties.major}{properties.minor}'
        memory = properties.total_memory / 2**30
        report.ok(f'GPU {i}: {properties.name}, {memory:.0f} GiB, {arch}')
        if not any(a.startswith(f'sm_{properties.major}')
                   for a in torch.cuda.get_arch_list()):
            report.error(f'torch was not built for {arch}',
                         'install a build whose CUDA version knows it')
    if not importlib.import_module('torch.distributed').is_nccl_available():
        report.warn('no NCCL', "set env_cfg.dist_cfg.backend='gloo'")


def check_slurm(report: Report) -> None:
    if shutil.which('srun') is None:
        report.ok('no Slurm here: tools/dist_train.sh is for one machine')
        return
    try:
        done = subprocess.run(
            ['sinfo', '--noheader', '--format=%R %t %D'], text=True,
            capture_output=True, timeout=20)
        problem = done.returncode and done.stderr.partition('\n')[0]
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    if problem:
        report.warn(f'srun is there, but sinfo fails ({problem})',
                    'is the Slurm controller up, is SLURM_CONF right?')
    else:
        lines = '; '.join(done.stdout.split('\n')).strip('; ')
        report.ok(f'Slurm, partitions with state and nodes: {lines}')


def check_disk(report: Report, folder: str) -> None:
    there = os.path.abspath(folder)
    while not os.path.isdir(there):
        there = os.path.dirname(there)
    if not os.access(there, os.W_OK):
        report.error(f'{there} cannot be written', 'choose another --work-dir')
        return
    free = shutil.disk_usage(there).free / 2**30
    if free < 5:
        report.warn(f'{free:.1f} GiB free in {there}',
                    'a checkpoint of a detector takes about 0.4 GiB, and one '
                    'more than max_keep_ckpts must fit')
    else:
        report.ok(f'{free:.0f} GiB free in {there}')


def check_weights(report: Report) -> None:
    """Weights that were downloaded before are found without a network."""
    home = os.path.expanduser(
        os.environ.get('TORCH_HOME')
        or os.path.join(os.environ.get('XDG_CACHE_HOME', '~/.cache'), 'torch'))
    folder = os.path.join(home, 'hub', 'checkpoints')
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    if names:
        shown = ', '.join(names[:5]) + (', ...' if len(names) > 5 else '')
        report.ok(f'{len(names)} files of weights in {folder}: {shown}')
    else:
        report.warn(
            f'no weights in {folder}',
            "init_cfg with torchvision:// or http:// will download; on a node "
            'without network put the file there, or set '
            'model.backbone.init_cfg=None')


def check_data(report: Report, root: str) -> None:
    if not os.path.isdir(root):
        report.warn(f'no folder {root}',
                    'the configs read their datasets there; --data-root of '
                    'the tools names another')
        return
    names = sorted(os.listdir(root))
    report.ok(f'{root}: {", ".join(names) or "empty"}')


def check_config(report: Report, path: str) -> None:
    """A config reads, and its files are there."""
    try:
        config = importlib.import_module('stepnet_mm.config')
        cfg = config.read_config(path)
        config.check_weights(cfg)
        config.check_sync_bn(cfg)
        config.check_data(cfg, config.TRAIN + config.EVALUATION)
        report.ok(f'{path}: it reads, its files are there')
    except Exception as error:
        report.error(f'{path}: {type(error).__name__}', str(error))


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        prog='python -m stepnet_mm.doctor', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--config', help='check a config and its files too')
    parser.add_argument('--work-dir', default='work_dirs')
    parser.add_argument('--data-root', default='data')
    args = parser.parse_args(arguments)
    report = Report()
    check_python(report)
    versions = check_versions(report)
    check_tried(report, versions)
    check_imports(report)
    if not report.counts['error']:
        for library in check_registries(report):
            check_training(report, library)
    if not _import_error('torch'):
        check_devices(report)
    check_slurm(report)
    check_disk(report, args.work_dir)
    check_weights(report)
    check_data(report, args.data_root)
    if args.config:
        check_config(report, args.config)
    print('; '.join(f'{number} {level}'
                    for level, number in report.counts.items()))
    return int(report.counts['error'] > 0)


if __name__ == '__main__':
    sys.exit(main())
