#!/usr/bin/env bash
# Train under Slurm, as OpenMMLab's script of this name; waits for the end.
#
#   GPUS=16 bash tools/slurm_train.sh PARTITION JOB CONFIG [WORK_DIR] [arguments of train.py]
#
# Environment variables
#   GPUS, GPUS_PER_NODE   ranks in all and on a node (default 8 and 8)
#   CPUS_PER_TASK         default 5
#   GRES                  default gpu:$GPUS_PER_NODE; GRES= for CPU partitions
#   SRUN_ARGS             further arguments of srun
#   MASTER_ADDR, MASTER_PORT   default: the first node, a port of this job
#   PYTHON                the interpreter (default python)
# A job that comes back after preemption: tools/slurm_submit.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/launch_common.sh"
[ $# -ge 3 ] || die "expected PARTITION JOB CONFIG [WORK_DIR] [arguments of train.py]"
partition=$1 job=$2 config=$3
shift 3
check_config "$config"
# An argument that is no option is the work dir.
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  set -- --work-dir "$@"
fi
run_on_slurm "$partition" "$job" "$tools/train.py" "$config" "$@"
