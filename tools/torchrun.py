#!/usr/bin/env python
"""torchrun that ends with the exit code of the rank that failed first.

torchrun itself always ends with 1, so a run that was preempted (75) cannot be
told from one that failed. Its arguments are passed on.
"""
import re
import sys

from torch.distributed import DistNetworkError
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import main


def exit_code(error: ChildFailedError) -> int:
    """As a shell has it: 128 + number for a rank that a signal ended."""
    code = error.get_first_failure()[1].exitcode
    return code if code >= 0 else 128 - code


if __name__ == '__main__':
    try:
        main()
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        sys.exit(exit_code(error))
    except SignalException as error:
        sys.exit(128 + error.sigval)
    except DistNetworkError as error:
        port = re.search(r'port: (\d+)', str(error))
        if port is None or 'EADDRINUSE' not in str(error):
            raise
        sys.exit(f'torchrun: error: port {port.group(1)} is taken by another '
                 'process: set PORT to a free one')
