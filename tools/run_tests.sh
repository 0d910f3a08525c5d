#!/usr/bin/env bash
# Runs the test suite on one stack; further arguments go to pytest.
#   bash tools/run_tests.sh                      # STACK=onedl, everything
#   STACK=openmmlab bash tools/run_tests.sh -m core
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export STACK=${STACK:-onedl} VENV=${VENV:-$PWD/.venv/${STACK:-onedl}}
bash tools/setup_env.sh
exec "$VENV/bin/python" -m pytest "$@"
