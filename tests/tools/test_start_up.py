import subprocess
import sys

import pytest


def rows(request, *arguments):
    done = subprocess.run(
        [sys.executable,
         request.config.rootpath / 'tools/benchmarks/start_up.py',
         '--rounds', '1', *arguments], capture_output=True, text=True)
    return done, [line.rsplit(maxsplit=3) for line in done.stdout.splitlines()]


def test_rows_and_what_is_beyond_the_libraries(request):
    done, (_, *found) = rows(
        request, '--imports', 'json', '--tools', 'tools/make_mini_coco.py')
    assert done.returncode == 0, done.stderr
    names = [row[0] for row in found]
    assert names == ['torch', 'mmengine.runner', 'json',
                     'tools/make_mini_coco.py --help']
    total, runner = float(found[0][1]), float(found[1][1])
    assert 0 < total < runner
    for row in found[2:]:
        all_of_it, beyond_torch, beyond_runner = map(float, row[1:])
        assert beyond_torch == pytest.approx(all_of_it - total, abs=.011)
        assert beyond_runner == pytest.approx(all_of_it - runner, abs=.011)


def test_a_command_that_fails(request):
    done, _ = rows(request, '--imports', 'no_such_module', '--tools')
    assert done.returncode == 1
    assert "'import no_such_module']: exit code 1" in done.stderr
