#!/usr/bin/env bash
# Runs the test suite on one stack; further arguments go to pytest.
#   bash tools/run_tests.sh                      # STACK=onedl, minutes
#   bash tools/run_tests.sh --all                # the long tests as well
#   bash tools/run_tests.sh tests/steps -k eca   # some of them
#   bash tools/run_tests.sh -m soak              # kills and preempts a training
#   STACK=openmmlab bash tools/run_tests.sh -m core
# WORKERS is the number of processes (default: the cores, at most 8), each with
# one thread.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export STACK=${STACK:-onedl} VENV=${VENV:-$PWD/.venv/${STACK:-onedl}${TORCH:+-torch$TORCH}}
which='not long and not soak'
if [ "${1:-}" = --all ]; then
  which='not soak'
  shift
fi
cores=$(env -u OMP_NUM_THREADS nproc)
export OMP_NUM_THREADS=1
bash tools/setup_env.sh
# A -m among the arguments takes the place of this one.
exec "$VENV/bin/python" -m pytest -n "${WORKERS:-$((cores < 8 ? cores : 8))}" \
  --dist loadgroup --durations=10 -m "$which" "$@"
