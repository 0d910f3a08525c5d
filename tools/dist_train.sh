#!/usr/bin/env bash
# Train on several GPUs of one machine, or of several, with torchrun; on CPU
# where there is no GPU.
#
#   bash tools/dist_train.sh CONFIG GPUS [arguments of train.py]
#
# Environment variables
#   NNODES, NODE_RANK, MASTER_ADDR, PORT   for several machines
#   PYTHON                                 the interpreter (default python)
# Ends with the exit code of the rank that failed first; 75: stopped by a
# signal, --resume goes on.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/launch_common.sh"
[ $# -ge 2 ] || die "expected CONFIG GPUS [arguments of train.py]"
check_config "$1"
run_on_ranks "$2" "$tools/train.py" "$1" "${@:3}"
