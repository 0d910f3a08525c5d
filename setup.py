"""Set-up of stepnet_mm; the pinned stacks in requirements/ are its extras."""
import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent


def requirements(name):
    lines = (ROOT / 'requirements' / f'{name}.txt').read_text().splitlines()
    return [line for line in lines if line and not line.startswith('#')]


def version():
    text = (ROOT / 'stepnet_mm' / 'version.py').read_text()
    return re.search(r"__version__ = '(.+)'", text).group(1)


setup(
    name='stepnet_mm',
    version=version(),
    description='StepNet attention and neural stiffness for MMDetection and '
    'MMPretrain',
    long_description=(ROOT / 'README.md').read_text(),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    packages=find_packages(include=['stepnet_mm', 'stepnet_mm.*']),
    python_requires='>=3.10',
    # No mm library: the official wheels and onedl's carry the same import
    # names, and pip would overwrite the one that is there.
    install_requires=['torch>=2.0', 'numpy'],
    extras_require={
        name: requirements(name)
        for name in ('onedl', 'openmmlab', 'tests')
    },
)
