#!/usr/bin/env bash
# Makes a virtual environment in this checkout and installs one pinned stack.
#
#   bash tools/setup_env.sh                    # STACK=onedl, the default
#   STACK=openmmlab bash tools/setup_env.sh    # the last official OpenMMLab releases
#   STACK=classic bash tools/setup_env.sh      # the same with torch 2.1.2, Python 3.10
#   TORCH=2.15.0 bash tools/setup_env.sh       # a stack with another torch, as a trial
#
# Environment variables
#   STACK    onedl | openmmlab | classic: requirements/$STACK.txt is installed
#   TORCH    a version of torch in the place of the stack's
#   PYTHON   the interpreter to start from (default python3, classic: 3.10 if it is found)
#   VENV     where the environment goes (default .venv/$STACK, with TORCH .venv/$STACK-torch$TORCH)
#   UV       path of uv, or "no" to use pip (default: uv from PATH, else from PyPI)
#   CACHE    where the compiled mmcv is kept (default ~/.cache/stepnet_mm)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

STACK=${STACK:-onedl}
TORCH=${TORCH:-}
VENV=${VENV:-$PWD/.venv/$STACK${TORCH:+-torch$TORCH}}
UV=${UV:-}
CACHE=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stepnet_mm}
VENV=${VENV%/}
case $CACHE in /*) ;; *) CACHE=$PWD/$CACHE ;; esac  # compilers run elsewhere
stamp=$VENV/.stepnet_mm_complete
log=$VENV/setup.log

die() { printf 'setup_env: error: %s\n' "$*" >&2; exit 1; }
say() { printf 'setup_env: %s\n' "$*"; }
# By the signal, so that a script around this one stops too.
trap 'trap - INT; say interrupted >&2; kill -INT $$' INT

# Two set-ups at once take turns, at an environment and at a wheel.
lock() {  # FILE
  local code=0
  mkdir -p "$(dirname "$1")" 2>/dev/null || true
  # A read-only folder or a file system without locks is no obstacle.
  { command -v flock && touch "$1"; } >/dev/null 2>&1 || return 0
  exec {lock_fd}>"$1"
  flock -n -E 9 "$lock_fd" 2>/dev/null || code=$?
  [ "$code" = 9 ] || return 0
  say "another set-up is at work on ${1%.lock}; waiting for it"
  flock "$lock_fd"
}

check_stack() {
  case $STACK in
    onedl | openmmlab | classic) ;;
    *) die "STACK=$STACK: expected onedl, openmmlab or classic" ;;
  esac
}

# pyenv's python3.10 runs where it is asked for only.
default_python() {
  [ "$STACK" = classic ] &&
    PYENV_VERSION=3.10 python3.10 -c 'import sys; print(sys.executable)' 2>/dev/null ||
    echo python3
}

check_python() {
  local least limit
  read -r least limit < <(sed -nE "s/^PYTHON = \('(.+)', '(.+)'\)$/\1 \2/p" stepnet_mm/supported.py)
  [ "$STACK" != classic ] || limit=3.12  # torch 2.1 has no wheels from there on
  local expected="expected $least or later, before $limit; set PYTHON"
  command -v "$PYTHON" >/dev/null || die "no interpreter '$PYTHON': $expected"
  "$PYTHON" -c "
import sys
found = '.'.join(map(str, sys.version_info[:2]))
as_numbers = lambda version: [int(part) for part in version.split('.')]
sys.exit(not as_numbers('$least') <= as_numbers(found) < as_numbers('$limit'))" ||
    die "$("$PYTHON" -V 2>&1 | head -n 1) at '$PYTHON': $expected"
}

check_compiler() {
  command -v ${CXX:-c++} >/dev/null ||
    die "no C++ compiler '${CXX:-c++}' (mmcv is compiled here); install one (Debian: apt-get install g++) or set CXX"
  local header
  header=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
  [ -f "$header" ] ||
    die "no $header (mmcv is compiled here); install Python's headers (Debian: apt-get install python3-dev)"
}

# What the stack pins; with TORCH, that one and the torchvision that goes with it.
pins() {
  [ -n "$TORCH" ] || { cat "requirements/$STACK.txt"; return; }
  printf 'torch==%s\ntorchvision\n' "$TORCH"
  grep -vE '^torch(vision)?==' "requirements/$STACK.txt"
}

fingerprint() { { pins; cat requirements/tests.txt setup.py tools/setup_env.sh; } | sha256sum | cut -d' ' -f1; }

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

# Sets `install`, a command.
choose_installer() {
  find_uv
  install=("$VENV/bin/python" -m pip install --disable-pip-version-check)
  [ -z "$UV" ] || install=("$UV" pip install --python "$VENV/bin/python")
}

# Into the log, with a sign of life every 15 s.
quietly() {
  local tick=$SECONDS
  "$@" >>"$log" 2>&1 &
  while kill -0 $! 2>/dev/null; do
    sleep .2
    [ $((SECONDS - tick)) -lt 15 ] || { tick=$SECONDS; say "... $SECONDS s"; }
  done
  wait $! || give_up "the last step failed"
}

give_up() {  # WHAT
  tail -n 15 "$log" >&2
  if tail -n 200 "$log" | grep -qiE 'no space left|os error 28' ||
    [ "$(df --output=avail "$VENV" "$CACHE" 2>/dev/null | sort -n | sed -n 2p)" = 0 ]; then
    die "$1: the disk is full. $VENV takes about 8 GB, uv's or pip's cache and $CACHE as much again; free some and run this again, it goes on. Whole log: $log"
  fi
  die "$1; whole log: $log. Run this again to go on, or remove $VENV to begin anew"
}

install_torch() {
  pins >"$VENV/requirements.txt"
  grep -E '^(torch|torchvision|numpy|setuptools)(==|$)' "$VENV/requirements.txt" >"$VENV/torch.txt"
  say "$(head -n 1 "$VENV/torch.txt") and build tools"
  quietly "${install[@]}" -r "$VENV/torch.txt" wheel ninja psutil
}

# Fails where a checksum in the wheel is wrong.
WHOLE='import sys, zipfile; sys.exit(any(zipfile.ZipFile(p).testzip() for p in sys.argv[1:]))'

# Sets `wheels`, the folder with mmcv's compiled wheel.
find_mmcv() {
  local requirement
  requirement=$(grep -E '^(onedl-)?mmcv==' "$VENV/requirements.txt")
  wheels=$CACHE/$requirement-$(build_tag)
  lock "$wheels.lock"
  if ! "$VENV/bin/python" -c "$WHOLE" "$wheels"/*.whl >/dev/null 2>&1; then
    [ ! -d "$wheels" ] || say "the wheel in $wheels is damaged; compiling it again"
    compile_mmcv "$requirement"
  fi
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
  local requirement=$1 compiler=${CXX:-c++}
  check_compiler
  rm -rf "$wheels".building*  # of a set-up that was killed
  building=$(mktemp -d "$wheels.building.XXXXXX")
  # The rest beside it, into a log of its own; install_rest says what failed. mmdet
  # and mmpretrain require mmcv, whose wheel comes first.
  grep -vE '^(onedl-)?mm' "$VENV/requirements.txt" >"$VENV/others.txt"
  "${install[@]}" -r "$VENV/others.txt" -r requirements/tests.txt >"$VENV/others.log" 2>&1 &
  local others=$!
  trap 'kill $others 2>/dev/null || true; rm -rf "$building"' EXIT
  say "compiling $requirement with its operators (about 3 minutes on 2 cores, once); torch's headers first"
  mkdir "$building/pch" "$building/wheels"
  PATH=$VENV/bin:$PATH MMCV_WITH_OPS=1 CXX=$(printf %q "$PWD/tools/pch_cxx.sh") PCH_DIR=$building/pch \
    PCH_CXX=$compiler "$VENV/bin/python" -m pip wheel -v \
    --no-build-isolation --no-deps --no-cache-dir -w "$building/wheels" "$requirement" 2>&1 |
    tee -a "$log" | (grep --line-buffered -oE "^ *\[[0-9]+/[0-9]+\]|pch_cxx: .*" || true) | show_progress ||
    give_up "mmcv did not compile"
  wait $others || true
  trap 'rm -rf "$building"' EXIT
  rm -rf "$wheels"
  mv "$building/wheels" "$wheels"  # whole or not at all
  rm -rf "$building"
}

# One line that counts on a terminal, every tenth step in a log file.
show_progress() {
  local line step count=0
  while read -r line; do
    step=${line//[[:space:]]/}
    case $line in
      pch_cxx:*) printf 'setup_env: %s\n' "${line#pch_cxx: }" ;;
      *) if [ -t 1 ]; then printf '\r  compiling mmcv %s ' "$step"
         elif [ $((count++ % 10)) = 0 ]; then printf '  compiling mmcv %s, %s s\n' "$step" "$SECONDS"; fi ;;
    esac
  done
  if [ -t 1 ]; then printf '\r'; fi
}

install_rest() {
  say "the other requirements and stepnet_mm itself"
  PATH=$VENV/bin:$PATH quietly "${install[@]}" --no-build-isolation "$wheels"/*.whl \
    -r "$VENV/requirements.txt" -r requirements/tests.txt
  quietly "${install[@]}" --no-build-isolation --no-deps -e .
}

# Everything that a training imports, which also writes its bytecode. Containers
# often forbid that by PYTHONDONTWRITEBYTECODE, and each start would take twice as long.
import_all() {
  env -u PYTHONDONTWRITEBYTECODE "$VENV/bin/python" -c '
import stepnet_mm, mmcv.ops, torchvision, torch._dynamo, torch.utils.tensorboard
import mmdet.utils, mmpretrain.utils
mmdet.utils.register_all_modules()
mmpretrain.utils.register_all_modules()' >>"$log" 2>&1
}

check_stack
PYTHON=${PYTHON:-$(default_python)}
check_python
lock "$VENV.lock"
check_broken
if [ "$(cat "$stamp" 2>/dev/null)" = "$(fingerprint)" ]; then
  say "$VENV is ready"
  exit 0
fi
make_venv
choose_installer
say "installing STACK=$STACK into $VENV with ${UV:-pip} (log: $log)"
install_torch
find_mmcv
install_rest
import_all || {
  tail -n 3 "$log" >&2
  die "the environment does not import (if it is mmcv's operators: remove $wheels and run this again); whole log: $log"
}
fingerprint >"$stamp"
say "$VENV is ready, after $SECONDS s"
