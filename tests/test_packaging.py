"""Configs, tools and the model index travel with the package."""
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from by_path import load

# One worker of pytest-xdist: the tests share their builds.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group('packaging')]
ROOT = Path(__file__).resolve().parents[1]
FAULTS = load(ROOT / 'tests/faults.py')
CONFIG = 'faster_rcnn_r50_stepnet.py'


def run(*command, cwd, **env):
    result = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**os.environ, **env},
        capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def build(hook, tree, out):
    """What pip, uv and build call, without their isolation and network."""
    code = f'from setuptools import build_meta as b; print(b.{hook}("{out}"))'
    return out / run(sys.executable, '-c', code, cwd=tree).splitlines()[-1]


def inside(archive):
    """The files of a wheel, or of an sdist without its first folder."""
    if archive.suffix == '.whl':
        return set(zipfile.ZipFile(archive).namelist())
    with tarfile.open(archive) as tar:
        return {member.name.partition('/')[2]
                for member in tar if member.isfile()}


@pytest.fixture(scope='module')
def tree():
    """A copy of the checkout as git has it, and what it ignores beside."""
    with FAULTS.copy_of_checkout() as path:
        run('git', 'init', '-q', cwd=path)
        run('git', 'add', '.', cwd=path)
        for junk in ('tools/__pycache__/train.pyc', '.venv/lib/mmcv.py'):
            (path / junk).parent.mkdir(parents=True)
            (path / junk).touch()
        yield path


def test_wheel_and_sdist_carry_the_same_and_the_wheel_works(tree, tmp_path):
    """All of configs and tools that git has."""
    wheel, sdist = (build(f'build_{kind}', tree, tmp_path)
                    for kind in ('wheel', 'sdist'))
    files = run('git', 'ls-files', 'configs', 'tools', cwd=tree).splitlines()
    travelling = {f'stepnet_mm/.mim/{name}'
                  for name in [*files, 'model-index.yml']}
    for archive in (wheel, sdist):
        assert {name for name in inside(archive)
                if '.mim/' in name} == travelling
    assert {name.partition('/')[0].partition('-')[0]
            for name in inside(wheel)} == {'stepnet_mm'}
    assert not any('__pycache__' in name for name in inside(wheel))
    assert not any('.venv' in name for name in inside(sdist))
    shutil.unpack_archive(sdist, tmp_path / 'unpacked')
    unpacked, = (tmp_path / 'unpacked').iterdir()
    second = build('build_wheel', unpacked, tmp_path / 'unpacked')
    assert inside(second) == inside(wheel)

    shutil.unpack_archive(wheel, tmp_path / 'site', 'zip')
    # -S: this package alone, without site-packages.
    code = f'import stepnet_mm; print(stepnet_mm.config_path({CONFIG!r}))'
    found = Path(run(sys.executable, '-S', '-c', code, cwd=tmp_path,
                     PYTHONPATH=str(tmp_path / 'site')))
    source, = (tree / 'configs').rglob(CONFIG)
    assert found == tmp_path / 'site/stepnet_mm/.mim' / source.relative_to(
        tree)
    assert found.read_text() == source.read_text()


def test_an_editable_install_has_links(tree, tmp_path):
    build('build_editable', tree, tmp_path)
    links = (tree / 'stepnet_mm' / '.mim').iterdir()
    assert {link.name: link.resolve() for link in links} == {
        'configs': tree / 'configs',
        'tools': tree / 'tools',
        'model-index.yml': tree / 'configs' / 'model-index.yml',
    }
    # Builds leave behind only what git ignores.
    assert run('git', 'ls-files', '-mo', '--exclude-standard', cwd=tree) == ''
