"""Set-up of stepnet_mm; the pinned stacks in requirements/ are its extras."""
import os.path as osp
import re
import runpy
import shutil
from glob import glob
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
SUPPORTED = runpy.run_path(str(ROOT / 'stepnet_mm' / 'supported.py'))
#: What travels with the package, where mim looks for it, and its source.
MIM = {
    'configs': 'configs',
    'tools': 'tools',
    'model-index.yml': 'configs/model-index.yml',
}
CLASSIFIERS = [
    'Development Status :: 5 - Production/Stable',
    'Intended Audience :: Developers',
    'Intended Audience :: Science/Research',
    'Operating System :: POSIX :: Linux',
    'Topic :: Scientific/Engineering :: Artificial Intelligence',
    'Topic :: Scientific/Engineering :: Image Recognition',
    *sorted({
        f'Programming Language :: Python :: {python}'
        for pythons, _ in SUPPORTED['TRIED'].values() for python in pythons
    }),
]


def link_mim():
    """Links stepnet_mm/.mim to its sources; an sdist has it already.

    An editable install needs no more, and setuptools copies through links.
    """
    folder = ROOT / 'stepnet_mm' / '.mim'
    folder.mkdir(exist_ok=True)
    for name, source in MIM.items():
        if (ROOT / source).exists() and not osp.lexists(folder / name):
            (folder / name).symlink_to(Path('..', '..', source))


class BuildPy(build_py):
    """A build without what an earlier one left."""

    def get_source_files(self):
        """An sdist carries what this file reads (in place of MANIFEST.in)."""
        return super().get_source_files() + glob('requirements/*.txt')

    def run(self):
        """As build_py, into an empty folder of mim's files."""
        # setuptools leaves the last build there; a config that moved since
        # would travel twice, and mim refuses a name that is there twice.
        shutil.rmtree(
            Path(self.build_lib, 'stepnet_mm', '.mim'), ignore_errors=True)
        super().run()


def requirements(name):
    """The lines of a file of requirements, comments left out."""
    lines = (ROOT / 'requirements' / f'{name}.txt').read_text().splitlines()
    return [line for line in lines if line and not line.startswith('#')]


def version():
    """The package's version, without importing it."""
    text = (ROOT / 'stepnet_mm' / 'version.py').read_text()
    return re.search(r"__version__ = '(.+)'", text).group(1)


link_mim()
setup(
    name='stepnet_mm',
    version=version(),
    description='StepNet attention and neural stiffness for MMDetection and '
    'MMPretrain',
    long_description=(ROOT / 'README.md').read_text(),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    keywords='mmdetection mmpretrain resnet attention step-size stiffness '
    'ode object-detection image-classification',
    classifiers=CLASSIFIERS,
    packages=find_packages(include=['stepnet_mm', 'stepnet_mm.*']),
    package_data={
        'stepnet_mm': [
            f'.mim/**/{name}'
            for name in ('*.py', '*.yml', '*.md', '*.sh', 'Snakefile',
                         'templates/*')
        ],
        'stepnet_mm.visualization': ['*.mplstyle'],
    },
    cmdclass=dict(build_py=BuildPy),
    # Without the upper limit: pip would look for an older release instead.
    python_requires=f'>={SUPPORTED["PYTHON"][0]}',
    # No mm library: the official wheels and onedl's carry the same import
    # names, and pip would overwrite the one that is there.
    install_requires=[f'torch>={SUPPORTED["MIN_VERSIONS"]["torch"]}', 'numpy'],
    extras_require={
        name: requirements(name)
        for name in ('onedl', 'openmmlab', 'classic', 'figures', 'studies',
                     'tests')
    },
)
