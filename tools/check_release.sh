#!/usr/bin/env bash
# Builds sdist and wheel of the last commit, checks them, and tries the wheel,
# which is built from the sdist, in an environment that has nothing else of ours.
#   bash tools/check_release.sh [FOLDER]    # default dist/; STACK as in setup_env.sh
# torch and the mm libraries are those of the stack's environment, the rest is
# new: the package must bring its own files and find them there.
# Exit code 69: the tools of a release could not be installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

STACK=${STACK:-onedl}
VENV=${VENV:-$PWD/.venv/$STACK}
mkdir -p "${1:-dist}"
dist=$(cd "${1:-dist}" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset PYTHONPATH

say() { printf 'check_release: %s (%s s)\n' "$*" "$SECONDS"; }
die() { say "error: $*" >&2; exit "${code:-1}"; }

make_env() { "${PYTHON:-$VENV/bin/python}" -m venv "$1"; }
packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
pip() { "$tmp/$1/bin/python" -m pip --quiet --disable-pip-version-check install "${@:2}"; }

say 'installing build and twine'
{ make_env "$tmp/tools" && pip tools -r requirements/release.txt; } ||
  code=69 die 'build and twine could not be installed'

say 'building'
mkdir "$tmp/source" "$tmp/built"
git archive HEAD | tar -x -C "$tmp/source"
"$tmp/tools/bin/python" -m build --outdir "$tmp/built" "$tmp/source" >"$tmp/log" 2>&1 ||
  { tail -n 20 "$tmp/log" >&2; code=69 die 'the build failed'; }
"$tmp/tools/bin/python" -m twine --no-color check --strict "$tmp/built"/*

say 'trying the wheel'
make_env "$tmp/fresh"
pip fresh --no-deps --no-index "$tmp/built"/*.whl
# Beside it, and after it on the path: its .pth files are not read, so that an
# editable install there stays unseen.
packages "$VENV" >"$(packages "$tmp/fresh")/stack.pth"
python=$tmp/fresh/bin/python
mkdir "$tmp/empty"
cd "$tmp/empty"
config=$("$python" -c "
import sys
from importlib.metadata import version
import stepnet_mm
assert stepnet_mm.__file__.startswith(sys.prefix), stepnet_mm.__file__
assert version('stepnet_mm') == stepnet_mm.__version__
print(stepnet_mm.config_path('faster_rcnn_r34_stepnet_mini_coco.py'))")
# The installed tools train the installed config.
installed=${config%/configs/*}/tools
{ "$python" "$installed/make_mini_coco.py" data --train 8 --val 2 &&
  "$python" "$installed/train.py" "$config" --data-root data --work-dir work \
    --cfg-options train_cfg.max_iters=2 train_cfg.val_interval=2; } >"$tmp/log" 2>&1 ||
  { tail -n 5 "$tmp/log" >&2; die 'train.py failed'; }
[ -f work/iter_2.pth ] || die 'train.py saved no checkpoint'
"$python" -m stepnet_mm.doctor --work-dir . || die 'the doctor found an error'

cp "$tmp/built"/* "$dist"
say "done: $(cd "$tmp/built" && echo *) in $dist"
