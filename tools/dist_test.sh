#!/usr/bin/env bash
# Evaluate on several GPUs with torchrun; see dist_train.sh.
#
#   bash tools/dist_test.sh CONFIG CHECKPOINT GPUS [arguments of test.py]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/launch_common.sh"
[ $# -ge 3 ] || die "expected CONFIG CHECKPOINT GPUS [arguments of test.py]"
check_config "$1"
run_on_ranks "$3" "$tools/test.py" "$1" "$2" "${@:4}"
