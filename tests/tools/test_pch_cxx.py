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

#: A source, a small torch that it includes, and a compiler that writes down
#: its calls; a header takes a while.
FILES = {
    'a.cpp': '#include <torch/types.h>\nint a = seven();\n',
    'torch/types.h': '#pragma once\ninline int seven() { return 7; }\n',
    'torch/all.h': '#if __cplusplus < 202002L\n#error C++20 or later '
                   'compatible compiler is required\n#endif\n',
    'compiler': '''#!/usr/bin/env bash
echo "$*" >>calls
case " $* " in *" c++-header "*) sleep .2 ;; esac
exec g++ "$@"
'''}


@pytest.fixture
def compile(tmp_path):
    """compile('-O2', output='b.o'): a compilation that begins"""
    for folder in ('torch', 'pch'):
        (tmp_path / folder).mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / 'compiler').chmod(0o755)

    def compile(*flags, output='a.o'):
        return subprocess.Popen(
            [WRAPPER, f'-I{tmp_path}', *flags, '-c', 'a.cpp', '-o', output,
             '-std=c++17'], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.STDOUT,
            env=dict(os.environ, PCH_DIR=str(tmp_path / 'pch'),
                     PCH_CXX=str(tmp_path / 'compiler')))

    return compile


def calls(folder, word):
    lines = (folder / 'calls').read_text().splitlines()
    return [line for line in lines if word in f' {line} ']


def test_parallel_calls_make_one_header_of_the_standard_torch_needs(
        compile, tmp_path):
    processes = [compile(output=f'{i}.o') for i in range(3)]
    assert [process.wait() for process in processes] == [0] * 3
    header, = calls(tmp_path, ' c++-header ')
    assert '-std=c++20' in header
    compiled = calls(tmp_path, ' -include ')
    assert len(compiled) == 3
    assert all(call.endswith('-std=c++20') for call in compiled)


def test_without_a_header_that_fits_the_build_goes_on_and_says_so_once(
        compile, tmp_path):
    said = []
    for i, flags in enumerate((['-O2'], ['-O0', '-fno-exceptions'], ['-O0'])):
        process = compile(*flags, output=f'{i}.o')
        said.append(process.communicate()[0])
        assert process.returncode == 0 and (tmp_path / f'{i}.o').exists()
    assert said[0] == said[2] == ''
    assert said[1].startswith('pch_cxx: no precompiled header')
    assert len(calls(tmp_path, ' -include ')) == 2
    assert not list((tmp_path / 'pch').glob('*.gch'))
