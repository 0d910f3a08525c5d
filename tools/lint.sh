#!/usr/bin/env bash
# Style and types, with the settings of .ci/pyproject.toml.
#   bash tools/lint.sh          # says what is wrong
#   bash tools/lint.sh --fix    # mends what ruff can
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export VENV=${VENV:-$PWD/.venv/${STACK:-onedl}}
bash tools/setup_env.sh
"$VENV/bin/ruff" check --config .ci/pyproject.toml "$@" stepnet_mm tools tests setup.py .ci/site/hooks
"$VENV/bin/python" -m mypy --config-file .ci/pyproject.toml
