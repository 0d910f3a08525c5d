"""Which versions the package goes with, and with which it was tried.

The one place for it: setup.py and the doctor read it, a test compares README
and requirements/.
"""
#: The first Python, and the first that is too new for the libraries.
PYTHON = ('3.10', '3.13')
#: Import name -> the least version.
MIN_VERSIONS = dict(torch='2.1', mmengine='0.10', mmcv='2.0', mmdet='3.0',
                    mmpretrain='1.0')
#: Environments in which the core tests ran: what the set-up was given, STACK=,
#: Pythons, and versions by import name.
TRIED = {
    'onedl': (('3.11', '3.12'), dict(
        torch='2.11.0', numpy='2.4.0', mmengine='0.10.12', mmcv='2.3.6',
        mmdet='3.5.1', mmpretrain='1.3.6')),
    'openmmlab': (('3.11', ), dict(
        torch='2.5.1', numpy='1.26.4', mmengine='0.10.7', mmcv='2.1.0',
        mmdet='3.3.0', mmpretrain='1.2.0')),
    'classic': (('3.10', ), dict(
        torch='2.1.2', numpy='1.26.4', mmengine='0.10.7', mmcv='2.1.0',
        mmdet='3.3.0', mmpretrain='1.2.0')),
    'onedl TORCH=2.15.0': (('3.12', ), dict(
        torch='2.15.0', numpy='2.4.0', mmengine='0.10.12', mmcv='2.3.6',
        mmdet='3.5.1', mmpretrain='1.3.6')),
}


def differences(python: str, versions: dict) -> dict:
    """How an environment differs from each of those that were tried, by name.

    As ``['torch 2.9.1 (tried 2.11.0)']``. ``versions`` has those of what is
    installed, by import name; one of mmdet and mmpretrain may be absent.
    """
    return {name: [*_of_python(python, pythons), *(
        f'{library} {versions[library]} (tried {version})'
        for library, version in tried.items()
        if library in versions and _release(versions[library]) != version)]
            for name, (pythons, tried) in TRIED.items()}


def _of_python(version: str, tried: tuple) -> list[str]:
    if version.rpartition('.')[0] in tried:
        return []
    return [f'Python {version} (tried {", ".join(tried)})']


def _release(version: str) -> str:
    """'2.11.0+cu130' -> '2.11.0'."""
    return version.partition('+')[0]
