#!/usr/bin/env bash
# A Slurm job that saves when it is preempted or its time runs out, goes back
# into the queue and goes on bit for bit.
#
#   sbatch --partition=P --ntasks=16 --ntasks-per-node=8 --gres=gpu:8 \
#     --cpus-per-task=5 tools/slurm_submit.sh CONFIG [arguments of train.py]
#
# For a job array, @FILE in place of CONFIG: task N takes its arguments from
# line N of FILE, as a shell would split them.
#
# Submit from the root of this repository, or set STEPNET_MM to it. One task is
# one rank. 120 s before the time limit USR1 reaches the ranks, which is when
# they save; give a longer --signal=USR1@SECONDS where an iteration and a save
# take longer. PYTHON is the interpreter (default python).
#SBATCH --job-name=stepnet_mm
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm-%j.log
#SBATCH --signal=USR1@120
set -euo pipefail

die() { printf 'slurm_submit: error: %s\n' "$*" >&2; exit 2; }

[ -n "${SLURM_JOB_ID:-}" ] ||
  die "expected to be submitted: sbatch tools/slurm_submit.sh CONFIG ..."
# Slurm runs a copy of this file from elsewhere.
root=${STEPNET_MM:-$SLURM_SUBMIT_DIR}
[ $# -ge 1 ] || die "expected CONFIG [arguments of train.py]"
[ -f "$root/tools/train.py" ] ||
  die "STEPNET_MM: expected a folder with tools/train.py, got $root; submit from the repository, or set it"
if [[ $1 == @* ]]; then
  [ -f "${1#@}" ] || die "no file ${1#@} in $PWD"
  [ -n "${SLURM_ARRAY_TASK_ID:-}" ] || die "$1: expected a job array, got none; sbatch --array=1-N"
  line=$(sed -n "${SLURM_ARRAY_TASK_ID}p" "${1#@}")
  [ -n "$line" ] || die "$1: expected CONFIG ... in line $SLURM_ARRAY_TASK_ID, got nothing"
  mapfile -t words < <(xargs printf '%s\n' <<<"$line")
  set -- "${words[@]}" "${@:2}"
fi
[ -f "$1" ] || die "CONFIG: expected a file, got $1, which is none in $PWD; name another"
[ -n "${SLURM_NTASKS:-}" ] || die "--ntasks: expected the number of ranks, got none; give it to sbatch"
for argument in "$@"; do
  case $argument in --resume*)
    die "every start resumes from the work dir by itself; to begin with weights, --cfg-options load_from=FILE" ;;
  esac
done
PYTHON=${PYTHON:-python}
command -v "$PYTHON" >/dev/null || die "PYTHON: expected an interpreter, got $PYTHON, which is none; set another"

# This is the first node, where the first rank will listen.
MASTER_PORT=${MASTER_PORT:-$("$PYTHON" -c '
import socket
s = socket.socket()
s.bind(("", 0))
print(s.getsockname()[1])')}
export MASTER_PORT
echo "slurm_submit: job $SLURM_JOB_ID, start $((${SLURM_RESTART_COUNT:-0} + 1)), $SLURM_NTASKS ranks"
# A signal that comes before Python runs would end the rank for good; env holds
# it back (coreutils from 8.31 on), and tools/train.py goes on from there.
hold=(env --block-signal=USR1 --block-signal=USR2)
"${hold[@]}" true 2>/dev/null || hold=()
# srun no longer takes --cpus-per-task from sbatch by itself.
exec srun ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} \
  --kill-on-bad-exit=1 "${hold[@]}" "$PYTHON" -u "$root/tools/train.py" "$@" \
  --launcher slurm --resume
