#!/usr/bin/env bash
# Prints the environment that has Snakemake, $STUDIES_VENV or .venv/studies, and
# makes it where it is not there, by Python 3.11 or newer. Exit code 1: no such
# Python, or PyPI is not reached. For tools/study.sh and the tests.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
wanted=$root/requirements/studies.txt
venv=${STUDIES_VENV:-$root/.venv/studies}
is_there() { cmp -s "$wanted" "$venv/.complete"; }
is_there && echo "$venv" && exit
mkdir -p "$(dirname "$venv")"
exec 9> "$venv.lock"
flock 9
is_there && echo "$venv" && exit
for python in python3.13 python3.12 python3.11 python3 "${PYTHON:-python}"; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
  echo "study: installing Snakemake into $venv" >&2
  "$python" -m venv "$venv" >&2 && "$venv/bin/python" -m pip install --quiet \
    --disable-pip-version-check -r "$wanted" >&2 || continue
  cp "$wanted" "$venv/.complete"
  echo "$venv"
  exit
done
exit 1
