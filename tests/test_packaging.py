"""Configs, tools and the model index travel with the package."""
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

# One worker of pytest-xdist: the tests share their builds.
pytestmark = pytest.mark.xdist_group('packaging')
ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ('stepnet_mm', 'configs', 'tools', 'requirements', 'tests')
FILES = ('setup.py', 'README.md', 'LICENSE', '.gitignore')
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
def tree(tmp_path_factory):
    """A copy of the checkout as git has it, and what it ignores beside."""
    path = tmp_path_factory.mktemp('checkout') / 'tree'
    for name in FOLDERS:
        shutil.copytree(ROOT / name, path / name,
                        ignore=shutil.ignore_patterns('__pycache__', '.mim'))
    for name in FILES:
        shutil.copy(ROOT / name, path)
    run('git', 'init', '-q', cwd=path)
    run('git', 'add', '.', cwd=path)
    for junk in ('tools/__pycache__/train.pyc', '.venv/lib/mmcv.py'):
        (path / junk).parent.mkdir(parents=True)
        (path / junk).touch()
    return path


@pytest.fixture(scope='module')
def built(tree, tmp_path_factory):
    """What each hook makes of the tree; no test changes either."""
    out = tmp_path_factory.mktemp('built')
    return {hook: build(f'build_{hook}', tree, out)
            for hook in ('editable', 'wheel', 'sdist')}


def mim_files(archive):
    return {name for name in inside(archive) if '.mim/' in name}


@pytest.mark.long
def test_wheel_and_sdist_carry_the_same(tree, built, tmp_path):
    """All of configs and tools that git has."""
    wheel, sdist = built['wheel'], built['sdist']
    files = run('git', 'ls-files', 'configs', 'tools', cwd=tree).splitlines()
    travelling = {f'stepnet_mm/.mim/{name}'
                  for name in [*files, 'model-index.yml']}
    assert mim_files(wheel) == mim_files(sdist) == travelling
    assert {name.partition('/')[0].partition('-')[0]
            for name in inside(wheel)} == {'stepnet_mm'}
    assert not any('__pycache__' in name for name in inside(wheel))
    assert not any('.venv' in name for name in inside(sdist))
    shutil.unpack_archive(sdist, tmp_path / 'unpacked')
    unpacked, = (tmp_path / 'unpacked').iterdir()
    second = build('build_wheel', unpacked, tmp_path / 'unpacked')
    assert inside(second) == inside(wheel)


@pytest.mark.long
def test_an_installed_wheel_finds_its_configs(tree, built, tmp_path):
    target = tmp_path / 'site'
    install = '-m pip install --no-deps --no-index --no-compile --target'
    run(sys.executable, *install.split(), target, built['wheel'],
        cwd=tmp_path)
    # -S: this package alone, without site-packages.
    code = f'import stepnet_mm; print(stepnet_mm.config_path({CONFIG!r}))'
    found = Path(run(sys.executable, '-S', '-c', code, cwd=tmp_path,
                     PYTHONPATH=str(target)))
    source, = (tree / 'configs').rglob(CONFIG)
    inner = source.relative_to(tree)
    assert found == target / 'stepnet_mm' / '.mim' / inner
    assert found.read_text() == source.read_text()


@pytest.mark.long
def test_an_editable_install_has_links(tree, built):
    links = (tree / 'stepnet_mm' / '.mim').iterdir()
    assert {link.name: link.resolve() for link in links} == {
        'configs': tree / 'configs',
        'tools': tree / 'tools',
        'model-index.yml': tree / 'configs' / 'model-index.yml',
    }
    # Builds leave behind only what git ignores.
    assert run('git', 'ls-files', '-mo', '--exclude-standard', cwd=tree) == ''


@pytest.mark.long
def test_a_config_that_moved_travels_once(tree, built, tmp_path):
    """With what the last build has left behind."""
    moved = tmp_path / 'tree'
    shutil.copytree(tree, moved, symlinks=True)
    source, = (moved / 'configs').rglob(CONFIG)
    assert list((moved / 'build').rglob(CONFIG))
    (moved / 'configs' / 'moved').mkdir()
    source.rename(moved / 'configs' / 'moved' / CONFIG)
    wheel = build('build_wheel', moved, tmp_path)
    assert [name for name in inside(wheel) if name.endswith(f'/{CONFIG}')
            ] == [f'stepnet_mm/.mim/configs/moved/{CONFIG}']
