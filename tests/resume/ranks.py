"""Runs a function in forks that are ranks."""
import faulthandler
import time

from torch import multiprocessing

STDERR = 2  # sys.stderr may be pytest's


def run_on_ranks(function, args, ranks, seconds=300):
    """Call function(rank, *args) on each; their end is this call's.

    Ranks that wait for each other for ever, which a fork of a process with
    threads can do, are killed and fail the test instead of stopping all. The
    stacks of ranks that take half of this time are in its output.
    """
    forks = multiprocessing.start_processes(
        _watched, (seconds / 2, function, *args), ranks, join=False,
        start_method='fork')
    end = time.monotonic() + seconds
    try:
        while not forks.join(timeout=max(0, end - time.monotonic())):
            running = [i for i, process in enumerate(forks.processes)
                       if process.is_alive()]
            assert time.monotonic() < end, (
                f'ranks {running} of {ranks} still run after {seconds} s')
    finally:
        for process in forks.processes:
            process.kill()
            process.join()


def _watched(rank, seconds, function, *args):
    faulthandler.dump_traceback_later(seconds, file=STDERR)
    function(rank, *args)
