#!/usr/bin/env bash
# Builds the documentation site from README.md, docs/ and the docstrings.
#   bash tools/build_docs.sh             # into build/site
#   bash tools/build_docs.sh --serve     # shows it, anew after each change; not
#                                        # strict, as it is being written
# Further arguments go to mkdocs. A broken link, anchor or reference, or a page
# that the nav does not have, is an error. The packages of requirements/docs.txt
# go into an environment of their own, .venv/docs or $DOCS_VENV; torch is not
# needed. Exit code 69: they could not be installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VENV=${DOCS_VENV:-$PWD/.venv/docs}
stamp=$VENV/.complete

say() { printf 'build_docs: %s\n' "$*"; }

install() {
  say "installing requirements/docs.txt into $VENV"
  "${PYTHON:-python3}" -m venv "$VENV" &&
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check \
      -r requirements/docs.txt >&2 && cp requirements/docs.txt "$stamp"
}

cmp -s requirements/docs.txt "$stamp" || install ||
  { say 'error: the packages could not be installed' >&2; exit 69; }
# What Material says of the next MkDocs, in colours, at each build.
export NO_MKDOCS_2_WARNING=1
if [ "${1:-}" = --serve ]; then
  exec "$VENV/bin/python" -m mkdocs serve --no-strict -f .ci/site/mkdocs.yml "${@:2}"
fi
# Not --quiet, which would not count the warnings.
"$VENV/bin/python" -m mkdocs build --strict -f .ci/site/mkdocs.yml "$@"
say "done after $SECONDS s; without -d in build/site"
