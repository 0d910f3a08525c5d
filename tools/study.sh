#!/usr/bin/env bash
# Runs a study: trains, measures and records each of its runs that has no
# record in results/, on Snakemake, which goes on where it was.
#   bash tools/study.sh configs/studies/table1_cifar10.py -n      # what is left
#   bash tools/study.sh STUDY data_root=DATA -j 2                 # two at a time
#   bash tools/study.sh STUDY methods=plain,se work_dir=W records=FILE -j 8
#   bash tools/study.sh STUDY sbatch="-p PARTITION --gres=gpu:1" -j 20
# Behind STUDY stand KEY=VALUE, then options of Snakemake, such as --retries 1.
# PYTHON: of the training (default: python). Snakemake needs Python 3.11 and an
# environment of its own, .venv/studies or $STUDIES_VENV; without it the runs
# go one after the other. TERM and Ctrl-C have all trainings save.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python}
say() { printf 'study: %s\n' "$*" >&2; }

[ -f "${1:-}" ] || { say "expected a study file, got '${1:-}'"; exit 2; }
study=$(realpath "$1") name=$(basename "$1" .py)
work_dir=work_dirs/$name records=results/$name.jsonl
shift
options=()
while [[ ${1:-} == [a-z]*=* ]]; do
  case $1 in
    work_dir=*) work_dir=${1#*=} ;;
    records=*) records=${1#*=} ;;
    methods=* | sbatch=*) options+=("--$1") ;;
    data_root=*) options+=("--data-root=$(realpath -m "${1#*=}")") ;;
    *) say "expected work_dir, records, methods, data_root or sbatch, got $1"; exit 2 ;;
  esac
  shift
done
mkdir -p "$work_dir"
work_dir=$(realpath "$work_dir")
options+=("--work-dir=$work_dir" "--records=$(realpath -m "$records")")
step() { "$python" "$root/tools/studies/run.py" "$1" "$study" "${options[@]}" "${@:2}"; }
runs=$(step list)
[ -n "$runs" ] || { say "all runs have their records in $records"; exit 0; }

venv=${STUDIES_VENV:-$root/.venv/studies}
install() {
  local found
  for found in python3.13 python3.12 python3.11 python3 "$python"; do
    "$found" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    say "installing Snakemake into $venv"
    "$found" -m venv "$venv" && "$venv/bin/python" -m pip install --quiet \
      --disable-pip-version-check -r "$root/requirements/studies.txt" >&2 &&
      cp "$root/requirements/studies.txt" "$venv/.complete" && return
  done
  return 1
}

one_by_one() {
  local run code=0
  for run in $runs; do
    { step train --run="$run" && step record --run="$run"; } || code=1
  done
  return $code
}

exec 9> "$work_dir/study.lock"
flock -n 9 || { say "expected one engine for $work_dir, got another at work"; exit 2; }
if ! cmp -s "$root/requirements/studies.txt" "$venv/.complete" && ! install; then
  say 'no Snakemake (it needs Python 3.11 and PyPI): the runs go one after the other'
  one_by_one
  exit
fi
command=$(printf '%q ' "$python" "$root/tools/studies/run.py" STEP "$study" "${options[@]}")
set -m  # a process group of its own, so that a signal reaches all trainings
"$venv/bin/snakemake" --snakefile "$root/tools/studies/Snakefile" \
  --directory "$work_dir" --keep-going --rerun-incomplete --rerun-triggers input \
  --nolock --quiet rules host reason "$@" \
  --config "step=$command" "runs=${runs//$'\n'/ }" 9>&- &
engine=$!
trap 'kill -TERM -- -$engine' TERM HUP INT
while kill -0 $engine 2>/dev/null; do wait $engine && code=0 || code=$?; done
exit "${code:-0}"
