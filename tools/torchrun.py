#!/usr/bin/env python
"""torchrun that ends with the exit code of the rank that failed first.

torchrun itself always ends with 1, so a run that was preempted (75) cannot be
told from one that failed. Its arguments are passed on, and so are USR1 and
USR2, of which it would die. (TERM: it gives the ranks 30 s and ends with 143.)
Under nohup a HUP is ignored, for which torchrun has a handler of its own.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import glob
import os
import signal
import sys

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import main


def exit_code(error: ChildFailedError) -> int:
    """As a shell has it: 128 + number for a rank that a signal ended."""
    code = error.get_first_failure()[1].exitcode
    return code if code >= 0 else 128 - code


def keep_hup_ignored(number, handler, set_handler=signal.signal):
    """In place of ``signal.signal``."""
    return handler if number == signal.SIGHUP else set_handler(number, handler)


def pass_on(number, frame):
    """To the ranks, which are this process' children."""
    for path in glob.glob('/proc/[0-9]*/stat'):
        try:
            with open(path) as file:
                parent = file.read().rpartition(')')[2].split()[1]
            if int(parent) == os.getpid():
                os.kill(int(path.split('/')[2]), number)
        except (OSError, ValueError):
            pass  # it has just ended


if __name__ == '__main__':
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, pass_on)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal = keep_hup_ignored
    try:
        main()
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        sys.exit(exit_code(error))
    except SignalException as error:
        sys.exit(128 + error.sigval)
