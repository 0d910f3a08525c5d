"""mmcv's compiler: headers once, and the plain way wherever that fails."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

WRAPPER = Path(__file__).resolve().parents[2] / 'tools/pch_cxx.sh'
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


@pytest.mark.skipif(not shutil.which('g++') or not shutil.which('flock'),
                    reason='no g++ or no flock')
def test_one_header_and_without_one_that_fits_the_build_goes_on(tmp_path):
    for folder in ('torch', 'pch'):
        (tmp_path / folder).mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / 'compiler').chmod(0o755)

    def compile(output, *flags):
        return subprocess.Popen(
            [WRAPPER, f'-I{tmp_path}', *flags, '-c', 'a.cpp', '-o', output,
             '-std=c++17'], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.STDOUT,
            env=dict(os.environ, PCH_DIR=str(tmp_path / 'pch'),
                     PCH_CXX=str(tmp_path / 'compiler')))

    parallel = [compile(f'{i}.o') for i in range(3)]
    assert [process.wait() for process in parallel] == [0] * 3
    calls = (tmp_path / 'calls').read_text().splitlines()
    header, = (call for call in calls if ' c++-header ' in call)
    compiled = [call for call in calls if '-include ' in call]
    # By the standard that torch's header needs.
    assert '-std=c++20' in header and len(compiled) == 3
    assert all(call.endswith('-std=c++20') for call in compiled)
    said = []
    for flags in (['-O0', '-fno-exceptions'], ['-O0']):
        process = compile('other.o', *flags)
        said.append(process.communicate()[0])
        assert process.returncode == 0 and (tmp_path / 'other.o').exists()
    assert said[0].startswith('pch_cxx: no precompiled header')
    assert not said[1] and not list((tmp_path / 'pch').glob('*.gch'))
