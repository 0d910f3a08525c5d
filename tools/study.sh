#!/usr/bin/env bash
# Runs a study: trains, measures and records each of its runs that has no
# record, on Snakemake. What was stopped or failed goes on with the next call.
#   bash tools/study.sh STUDY -n                        # what is left
#   bash tools/study.sh STUDY data_root=DATA -j 2       # two at a time
#   bash tools/study.sh STUDY methods=plain,se work_dir=W records=FILE
#   bash tools/study.sh STUDY sbatch="-p PARTITION --gres=gpu:1" -j 20
# Behind STUDY stand KEY=VALUE, then options of Snakemake, such as --retries 1.
# PYTHON is the interpreter of the training (default python). Snakemake has an
# environment of its own, .venv/studies or $STUDIES_VENV, of Python 3.11 or
# newer, which is made here. TERM or Ctrl-C: all trainings save and end; a
# second one kills them.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python}
say() { printf 'study: %s\n' "$*" >&2; }

[ -f "${1:-}" ] || { say "expected a study file, got '${1:-}'; configs/studies has some"; exit 2; }
study=$1 name=$(basename "$1" .py)
work_dir=work_dirs/$name records=results/$name.jsonl
shift
options=()
while [[ ${1:-} == [a-z]*=* ]]; do
  case $1 in
    work_dir=?*) work_dir=${1#*=} ;;
    records=?*) records=${1#*=} ;;
    methods=?* | sbatch=?*) options+=("--$1") ;;
    data_root=?*) options+=("--data-root=${1#*=}") ;;
    *) say "expected work_dir, records, methods, data_root or sbatch=VALUE, got $1; correct it"; exit 2 ;;
  esac
  shift
done
command=("$python" "$root/tools/studies/runs.py" "$study" "$work_dir" "$records"
  "${options[@]}")

left=$("${command[@]}")
left=$(grep -E '^\w+_seed[0-9]+: ' <<<"$left" || true) # libraries print, too
[ -n "$left" ] || { say "nothing is left: all runs have their records in $records"; exit 0; }
for option in "$@"; do
  case $option in -n | --dry-run | --dryrun) printf '%s\n' "$left"; exit 0 ;; esac
done

mkdir -p "$work_dir"
exec 9> "$work_dir/study.lock"
flock -n 9 || { say "expected no other study.sh at work in $work_dir, got one; wait for it"; exit 2; }

# A run's tools hold its lock, too: what a killed study.sh left is waited for.
one_run() {
  cd "$STUDY_CWD" && mkdir -p "$STUDY_DIR/$1" && exec 8>> "$STUDY_DIR/$1/run.lock" || exit
  flock -n 8 || { say "$1: waits for what a killed study.sh left at work" && flock 8; } || exit
  eval "exec $STUDY_COMMAND --run=$1"
}
export -f say one_run
export STUDY_CWD=$PWD STUDY_DIR=$work_dir STUDY_COMMAND STUDY_RUNS
STUDY_COMMAND=$(printf '%q ' "${command[@]}")
STUDY_RUNS=$(sed 's/:.*//' <<<"$left")
venv=$(PYTHON=$python bash "$root/tools/studies/install.sh" 9>&-) || { say "expected Snakemake, got none; make an environment of Python 3.11 or newer with requirements/studies.txt, and name it by STUDIES_VENV"; exit 2; }
# Of itself it keeps nothing: records and checkpoints say what is left.
rm -rf "$work_dir/engine"
mkdir "$work_dir/engine"
[[ " $*" == *' -j'* || " $*" == *' -c'* || " $*" == *' --jobs'* || " $*" == *' --cores'* ]] || set -- -j 1 "$@"
# Not bin/snakemake, which a checkout that was moved has lost.
start=("$venv/bin/python" -m snakemake --snakefile "$root/tools/studies/Snakefile"
  --directory "$work_dir/engine" --workflow-profile none --keep-going --nolock
  --scheduler greedy --quiet all "$@")
set -m # a process group of its own, so that a signal reaches all trainings
"${start[@]}" 9>&- </dev/null &
engine=$! how=TERM code=0 stopped=0
stop() {
  stopped=$1
  kill -$how -- "-$engine"
  how=KILL
}
trap 'stop 129' HUP
trap 'stop 130' INT
trap 'stop 143' TERM
while kill -0 $engine 2>/dev/null; do wait $engine && code=0 || code=$?; done
[ $stopped = 0 ] || exit $stopped
exit $code
