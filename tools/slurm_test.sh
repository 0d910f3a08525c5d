#!/usr/bin/env bash
# Evaluate under Slurm; environment variables as for slurm_train.sh.
#
#   bash tools/slurm_test.sh PARTITION JOB CONFIG CHECKPOINT [arguments of test.py]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/launch_common.sh"
[ $# -ge 4 ] || die "expected PARTITION JOB CONFIG CHECKPOINT [arguments of test.py]"
check_config "$3"
run_on_slurm "$1" "$2" "$tools/test.py" "$3" "$4" "${@:5}"
