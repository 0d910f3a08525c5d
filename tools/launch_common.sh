# What the launchers share; they source it.

PYTHON=${PYTHON:-python}
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
name=$(basename "$0")

die() { printf '%s: error: %s\n' "$name" "$*" >&2; exit 2; }

check_number() {  # NAME VALUE
  case $2 in '' | *[!0-9]* | 0) die "$1: expected a number from 1 on, got '$2'; change it" ;; esac
}

check_config() { [ -f "$1" ] || die "CONFIG: expected a file, got $1, which does not exist; name another"; }

check_python() {
  command -v "$PYTHON" >/dev/null || die "PYTHON: expected an interpreter, got $PYTHON, which is none; set another"
}

# The ranks of one machine meet at a port that the system chooses; those of
# several machines need one that all of them know.
run_on_ranks() {  # GPUS SCRIPT ARGS...
  local ranks=$1 meet
  shift
  NNODES=${NNODES:-1}
  check_number GPUS "$ranks"
  check_number NNODES "$NNODES"
  check_python
  if [ "$NNODES" = 1 ] && [ -z "${PORT:-}" ]; then
    meet=(--rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:0)
  else
    [ "$NNODES" = 1 ] || [ -n "${MASTER_ADDR:-}" ] ||
      die "MASTER_ADDR: expected the first machine's address with NNODES=$NNODES, got none; set it"
    meet=(--node-rank="${NODE_RANK:-0}" --master-addr="${MASTER_ADDR:-127.0.0.1}"
      --master-port="${PORT:-29500}")
  fi
  exec "$PYTHON" "$tools/torchrun.py" --nnodes="$NNODES" \
    --nproc-per-node="$ranks" "${meet[@]}" "$@" --launcher pytorch
}

check_slurm() {  # PARTITION
  command -v srun >/dev/null ||
    die "srun: expected Slurm, got a machine without it; on one machine take dist_train.sh"
  [ -z "$1" ] || [ -n "$(sinfo --noheader --partition="$1" 2>&1 | head -n 1)" ] ||
    die "PARTITION: expected one of $(sinfo --noheader --format=%R 2>&1 | sort -u | xargs), got $1; name one of these"
}

# Sets GPUS_PER_NODE; a job smaller than a node takes a part of one.
check_gpus() {
  GPUS=${GPUS:-8} GPUS_PER_NODE=${GPUS_PER_NODE:-8}
  check_number GPUS "$GPUS"
  check_number GPUS_PER_NODE "$GPUS_PER_NODE"
  [ "$GPUS" -ge "$GPUS_PER_NODE" ] || GPUS_PER_NODE=$GPUS
  [ $((GPUS % GPUS_PER_NODE)) = 0 ] ||
    die "GPUS: expected a multiple of GPUS_PER_NODE=$GPUS_PER_NODE, got $GPUS; change one"
}

# One task a rank: torchrun's workers would outlive scancel. GRES= (empty) is
# for partitions without GPUs.
run_on_slurm() {  # PARTITION JOB_NAME SCRIPT ARGS...
  local partition=$1 job=$2 resources
  shift 2
  check_slurm "$partition"
  check_gpus
  check_python
  resources=${GRES-gpu:$GPUS_PER_NODE}
  # shellcheck disable=SC2086
  exec srun --partition="$partition" --job-name="$job" \
    ${resources:+--gres="$resources"} --ntasks="$GPUS" \
    --ntasks-per-node="$GPUS_PER_NODE" --cpus-per-task="${CPUS_PER_TASK:-5}" \
    --kill-on-bad-exit=1 ${SRUN_ARGS:-} "$PYTHON" -u "$@" --launcher slurm
}
