"""Runs a function in forks that are ranks."""
from torch import multiprocessing


def run_on_ranks(function, args, ranks):
    """Call function(rank, *args) on each; the limit of the test is theirs."""
    multiprocessing.start_processes(function, args, ranks,
                                    start_method='fork')
