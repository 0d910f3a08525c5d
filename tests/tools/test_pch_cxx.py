"""mmcv's compiler: headers once, and the plain way wherever that fails."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

WRAPPER = Path(__file__).resolve().parents[2] / 'tools/pch_cxx.sh'
pytestmark = pytest.mark.skipif(
    not shutil.which('g++') or not shutil.which('flock'),
    reason='no g++ or no flock')

#: A compiler that writes down its calls; a header takes a while.
COMPILER = '''#!/usr/bin/env bash
echo "$*" >>{folder}/calls
case " $* " in *" c++-header "*) sleep .2 ;; esac
exec g++ "$@"
'''


class Build:
    """A source that includes a torch of three lines, and its compiler."""

    def __init__(self, folder):
        self.folder = folder
        self.include = folder / 'include'
        (self.include / 'torch').mkdir(parents=True)
        (self.include / 'torch/all.h').write_text(
            '#if __cplusplus < 201703L\n'
            '#error C++17 or later compatible compiler is required\n#endif\n')
        (self.include / 'torch/types.h').write_text(
            '#pragma once\ninline int seven() { return 7; }\n')
        (folder / 'a.cpp').write_text(
            '#include <torch/types.h>\nint a = seven();\n')
        (folder / 'pch').mkdir()
        (folder / 'compiler').write_text(COMPILER.format(folder=folder))
        (folder / 'compiler').chmod(0o755)

    def start(self, *flags, output='a.o'):
        arguments = ['-MMD', '-MF', 'a.d', f'-I{self.include}', *flags, '-c',
                     'a.cpp', '-o', output, '-std=c++17']
        return subprocess.Popen(
            [WRAPPER, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env=dict(os.environ, PCH_DIR=str(self.folder / 'pch'),
                     PCH_CXX=str(self.folder / 'compiler')))

    def run(self, *flags, output='a.o'):
        process = self.start(*flags, output=output)
        text = process.communicate()[0]
        assert process.returncode == 0, text
        assert (self.folder / output).exists()
        return text

    def calls(self, word):
        lines = (self.folder / 'calls').read_text().splitlines()
        return [line for line in lines if word in f' {line} ']

    def headers(self):
        return list((self.folder / 'pch').glob('*.gch'))


@pytest.fixture
def build(tmp_path):
    return Build(tmp_path)


def test_parallel_calls_make_one_header(build):
    processes = [build.start(output=f'{i}.o') for i in range(3)]
    assert [process.wait() for process in processes] == [0] * 3
    assert build.run() == ''
    assert (build.folder / 'a.d').exists()
    assert len(build.headers()) == len(build.calls(' c++-header ')) == 1
    assert len(build.calls(' -include ')) == 4


def test_the_standard_is_the_one_that_torch_needs(build):
    path = build.include / 'torch/all.h'
    path.write_text(path.read_text().replace('17', '20'))
    build.run()
    assert all(line.endswith('-std=c++20') or '-x c++-header' in line
               for line in build.calls(' a.cpp '))
    assert '-std=c++20' in build.calls(' c++-header ')[0]


def test_without_a_header_that_fits_the_build_goes_on_and_says_so_once(build):
    build.run('-O2')
    line, = build.run('-O0', '-fno-exceptions', output='b.o').splitlines()
    assert line.startswith('pch_cxx: no precompiled header')
    assert 'torch_types.hpp.gch' in line
    assert build.run('-O0', output='c.o') == ''
    assert len(build.calls(' -include ')) == 2
    assert build.headers() == []
    assert build.calls(' a.cpp ')[-1].endswith('-std=c++17')
