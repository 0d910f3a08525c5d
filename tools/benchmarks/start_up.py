#!/usr/bin/env python
"""What importing the package and starting a tool costs, in processor time.

python tools/benchmarks/start_up.py [--rounds 3]

Each in a process of its own; the least of the rounds, and what is beyond an
import of torch and of mmengine.runner.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASE = ('torch', 'mmengine.runner')
IMPORTS = ('stepnet_mm', 'stepnet_mm.stiffness', 'stepnet_mm.visualization',
           'stepnet_mm.models')


def parse_args(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=3,
                        help='of which the least counts')
    parser.add_argument('--imports', nargs='*', default=IMPORTS,
                        help='modules beside torch and mmengine.runner')
    parser.add_argument('--tools', nargs='*', type=Path, default=all_tools(),
                        help='of which --help is asked (default: all)')
    return parser.parse_args(arguments)


def all_tools() -> list:
    return sorted(ROOT.glob('tools/*.py')) + sorted(ROOT.glob('tools/*/*.py'))


def seconds(command: list, rounds: int) -> float:
    """The least processor time of a command, user and system, in seconds."""
    return min(_seconds(command) for _ in range(rounds))


def _seconds(command: list) -> float:
    path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
    process = subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=dict(os.environ, PYTHONPATH=path))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f'{command}: exit code {process.returncode}')
    return usage.ru_utime + usage.ru_stime


def main(arguments=None):
    args = parse_args(arguments)
    commands = {name: ['-c', f'import {name}']
                for name in (*BASE, *args.imports)}
    for tool in args.tools:
        commands[f'{tool.resolve().relative_to(ROOT)} --help'] = [
            tool, '--help']
    print(f'{"processor time, s":45} {"all":>6} {"- torch":>8} '
          f'{"- runner":>9}')
    found = {}
    for name, command in commands.items():
        found[name] = seconds(command, args.rounds)
        beyond = [found[name] - found[base] if base in found else 0
                  for base in BASE]
        print(f'{name:45} {found[name]:6.2f} {beyond[0]:8.2f} '
              f'{beyond[1]:9.2f}', flush=True)


if __name__ == '__main__':
    main()
