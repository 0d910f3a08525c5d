"""Runs a function in forks that are ranks."""
import os
import tempfile

import torch
from torch import distributed, multiprocessing


def results_of_ranks(function, ranks=2):
    """A list of function(rank) of each, all in one process group."""
    results = multiprocessing.get_context('fork').Manager().dict()

    def run(rank, folder):
        torch.set_num_threads(1)
        os.environ['LOCAL_RANK'] = str(rank)  # of the forked process alone
        distributed.init_process_group(
            'gloo', init_method=f'file://{folder}/meet', rank=rank,
            world_size=ranks)
        results[rank] = function(rank)

    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.start_processes(
            run, (folder, ), ranks, start_method='fork')
        return [results[rank] for rank in range(ranks)]
