#!/usr/bin/env bash
# Makes a virtual environment in this checkout and installs one pinned stack.
#
#   bash tools/setup_env.sh                    # STACK=onedl, the default
#   STACK=openmmlab bash tools/setup_env.sh    # the last official OpenMMLab releases
#
# Environment variables
#   STACK    onedl | openmmlab: requirements/$STACK.txt is installed
#   PYTHON   the interpreter to start from (default python3; 3.10 to 3.12)
#   VENV     where the environment goes (default .venv/$STACK)
#   UV       path of uv, or "no" to use pip (default: uv from PATH, else from PyPI)
#   CACHE    where the compiled mmcv is kept (default ~/.cache/stepnet_mm)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

STACK=${STACK:-onedl}
PYTHON=${PYTHON:-python3}
VENV=${VENV:-$PWD/.venv/$STACK}
UV=${UV:-}
CACHE=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stepnet_mm}
stamp=$VENV/.stepnet_mm_complete
log=$VENV/setup.log

die() { printf 'setup_env: error: %s\n' "$*" >&2; exit 1; }
say() { printf 'setup_env: %s\n' "$*"; }

check_stack() {
  [ -f "requirements/$STACK.txt" ] && [ "$STACK" != tests ] ||
    die "STACK=$STACK: expected onedl or openmmlab"
}

check_python() {
  command -v "$PYTHON" >/dev/null ||
    die "no interpreter '$PYTHON'; set PYTHON to a Python 3.10, 3.11 or 3.12"
  "$PYTHON" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' ||
    die "$("$PYTHON" -V 2>&1 | head -n 1) at '$PYTHON': expected 3.10, 3.11 or 3.12; set PYTHON"
}

check_compiler() {
  command -v "${CXX:-c++}" >/dev/null ||
    die "no C++ compiler '${CXX:-c++}' (mmcv is compiled here); install one (Debian: apt-get install g++) or set CXX"
  local header
  header=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
  [ -f "$header" ] ||
    die "no $header (mmcv is compiled here); install Python's headers (Debian: apt-get install python3-dev)"
}

fingerprint() { cat "requirements/$STACK.txt" requirements/tests.txt setup.py tools/setup_env.sh | sha256sum | cut -d' ' -f1; }

check_broken() {
  [ -d "$VENV" ] || return 0
  "$VENV/bin/python" -c 'import sys' 2>/dev/null ||
    die "the environment $VENV is broken (its python does not run); remove it (rm -rf '$VENV') and run this again"
}

make_venv() {
  [ -d "$VENV" ] && { say "going on with the unfinished environment $VENV"; return; }
  "$PYTHON" -m venv "$VENV" 2>/dev/null || {
    rm -rf "$VENV"
    die "'$PYTHON -m venv' failed; install venv (Debian: apt-get install python3-venv) or set PYTHON"
  }
}

find_uv() {
  [ -z "$UV" ] || [ "$UV" = no ] || command -v "$UV" >/dev/null ||
    die "UV=$UV does not exist; give uv's path, or UV=no for pip"
  "$VENV/bin/python" -m pip --version >/dev/null 2>&1 ||
    "$VENV/bin/python" -m ensurepip >/dev/null 2>&1 || true
  [ "$UV" = no ] && { UV=; return; }
  [ -n "$UV" ] || UV=$(command -v uv || true)
  [ -n "$UV" ] || {
    "$VENV/bin/python" -m pip install --quiet uv >>"$log" 2>&1 && UV=$VENV/bin/uv || true
  }
}

install() {
  if [ -n "$UV" ]; then
    "$UV" pip install --python "$VENV/bin/python" "$@"
  else
    "$VENV/bin/python" -m pip install --disable-pip-version-check "$@"
  fi
}

pin() { sed -nE "s/^$1==([^; ]+).*/\1/p" "requirements/$STACK.txt" | head -n 1; }

quietly() {
  "$@" >>"$log" 2>&1 || { tail -n 15 "$log" >&2; die "the last step failed; whole log: $log"; }
}

install_torch() {
  say "torch $(pin torch) and build tools"
  grep -E '^(torch|torchvision|numpy|setuptools)==' "requirements/$STACK.txt" >"$VENV/torch.txt"
  quietly install -r "$VENV/torch.txt" wheel ninja psutil
}

# Sets `wheels`, the folder with mmcv's compiled wheel.
find_mmcv() {
  local requirement
  requirement=$(grep -E '^(onedl-)?mmcv==' "requirements/$STACK.txt")
  wheels=$CACHE/$requirement-$(build_tag)
  [ -n "$(find "$wheels" -name '*.whl' 2>/dev/null)" ] || compile_mmcv "$requirement"
}

# pip's and uv's caches do not know which torch, Python and device a wheel was
# compiled for, and uv's forgets it when the index says nothing of ages.
build_tag() {
  "$VENV/bin/python" -c "
import os, sys, torch
gpu = torch.cuda.is_available() or os.getenv('FORCE_CUDA') == '1'
print(f'torch{torch.__version__}-cp{sys.version_info[0]}{sys.version_info[1]}-'
      + ('gpu' if gpu else 'cpu'))"
}

compile_mmcv() {
  local requirement=$1 building=$wheels.$$
  check_compiler
  say "compiling $requirement with its operators (about 10 minutes on 2 cores, once)"
  PATH=$VENV/bin:$PATH MMCV_WITH_OPS=1 "$VENV/bin/python" -m pip wheel -v \
    --no-build-isolation --no-deps --no-cache-dir -w "$building" "$requirement" 2>&1 |
    tee -a "$log" | (grep --line-buffered -oE "\[[0-9]+/[0-9]+\]" || true) | show_progress || {
    tail -n 5 "$log" >&2
    die "mmcv did not compile; whole log: $log"
  }
  rm -rf "$wheels"
  mv "$building" "$wheels"  # whole or not at all
}

# One line that counts on a terminal, every tenth step in a log file.
show_progress() {
  local step count=0
  while read -r step; do
    if [ -t 1 ]; then printf '\r  compiling mmcv %s ' "$step"
    elif [ $((count++ % 10)) = 0 ]; then printf '  compiling mmcv %s\n' "$step"; fi
  done
  if [ -t 1 ]; then printf '\r'; fi
}

install_rest() {
  say "the other requirements and stepnet_mm itself"
  PATH=$VENV/bin:$PATH quietly install --no-build-isolation "$wheels"/*.whl \
    -r "requirements/$STACK.txt" -r requirements/tests.txt
  quietly install --no-build-isolation --no-deps -e .
}

check_stack
check_python
check_broken
if [ "$(cat "$stamp" 2>/dev/null)" = "$(fingerprint)" ]; then
  say "$VENV is ready"
  exit 0
fi
make_venv
find_uv
say "installing STACK=$STACK into $VENV with ${UV:-pip} (log: $log)"
install_torch
find_mmcv
install_rest
"$VENV/bin/python" -c 'import stepnet_mm, mmcv.ops, mmdet, mmpretrain' 2>>"$log" || {
  tail -n 3 "$log" >&2
  die "the environment does not import (if it is mmcv's operators: remove $wheels and run this again); whole log: $log"
}
fingerprint >"$stamp"
say "$VENV is ready"
