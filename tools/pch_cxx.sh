#!/usr/bin/env bash
# The C++ compiler as mmcv's build calls it, four times quicker: every source
# includes torch's headers, so they are compiled once. tools/setup_env.sh sets
#
#   CXX=tools/pch_cxx.sh
#   PCH_DIR    an empty folder, room for 500 MB
#   PCH_CXX    the compiler behind it (default c++)
#
# Only g++ is known to take the header; with any other compiler, or where it
# cannot be made or does not fit, the build goes on without, and says so in a
# line that begins with "pch_cxx:".
set -euo pipefail
read -ra cxx <<<"${PCH_CXX:-c++}"
header=$PCH_DIR/torch_types.hpp
given_up=$PCH_DIR/given_up

# Sets `source`, and `flags`, which the header must be made with too.
read_arguments() {
  source='' flags=()
  local compiles=no
  while [ $# -gt 0 ]; do
    case $1 in
      -c) compiles=yes ;;
      -MMD | -MD) ;;
      -MF | -MT | -MQ | -o) shift ;;
      *.cpp | *.cc | *.cxx) source=$1 ;;
      *) flags+=("$1") ;;
    esac
    shift
  done
  [ "$compiles" = yes ] || source=''
}

# mmcv's setup.py asks for C++17 whatever its torch needs; torch's header of
# everything says what that is.
needed_standard() {
  local flag needed=17
  for flag in "${flags[@]}"; do
    if [ -f "${flag#-I}/torch/all.h" ]; then
      needed=$(sed -nE 's/^#error C\+\+([0-9]+) or later.*/\1/p' "${flag#-I}/torch/all.h" | head -n 1)
    fi
  done
  echo "${needed:-17}"
}

is_gcc() {
  local macros
  macros=$("${cxx[@]}" -dM -E -x c++ /dev/null 2>/dev/null) || return 1
  [[ $macros == *__GNUC__* && $macros != *__clang__* ]]
}

give_up() {  # REASON
  [ ! -f "$given_up" ] || return 0
  touch "$given_up" 2>/dev/null || true
  rm -f "$header.gch" "$header.part."*
  echo "pch_cxx: no precompiled header (${1:-unknown reason}); compiling without it, about four times slower"
}

first_error() { grep -m 1 -iE 'error|no space' "$1" || head -n 1 "$1"; }

make_header() {
  is_gcc || { give_up "'${cxx[*]}' is not g++"; return; }
  echo '#include <torch/types.h>' >"$header"
  if "${cxx[@]}" "${flags[@]}" "${last[@]}" -x c++-header "$header" -o "$header.part.$$" 2>"$header.errors"; then
    mv "$header.part.$$" "$header.gch"
  else
    give_up "$(first_error "$header.errors")"
  fi
}

# The first of the parallel calls makes the header, the others wait for it.
ready() {
  [ -w "$PCH_DIR" ] || { give_up "cannot write to $PCH_DIR"; return 1; }
  (
    flock 9 2>/dev/null || true
    [ -f "$header.gch" ] || [ -f "$given_up" ] || make_header
  ) 9>"$PCH_DIR/lock"
  [ ! -f "$given_up" ] && [ -f "$header.gch" ]
}

read_arguments "$@"
[ -n "$source" ] || exec "${cxx[@]}" "$@"
last=(-g0 -std=c++"$(needed_standard)")
if ready; then
  errors=$PCH_DIR/$$.errors
  "${cxx[@]}" -include "$header" -Werror=invalid-pch "$@" "${last[@]}" 2>"$errors" && exit
  give_up "$(first_error "$errors")"
fi
exec "${cxx[@]}" "$@" "${last[@]}"
