#!/usr/bin/env bash
# Draws a mini-COCO, trains Faster R-CNN with a StepNet backbone on it,
# evaluates, and ends with the AP table, the TNS trend, pictures and a
# report of the trained network's stiffness.
#   bash tools/demo.sh      (STACK=openmmlab for the other stack)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export STACK=${STACK:-onedl} VENV=${VENV:-$PWD/.venv/${STACK:-onedl}${TORCH:+-torch$TORCH}}
bash tools/setup_env.sh
python=$VENV/bin/python
out=work_dirs/demo
config=configs/faster_rcnn_r34_stepnet_mini_coco.py
data=$out/mini_coco
start=$SECONDS

say() { echo "demo: $* ($((SECONDS - start)) s)"; }

trap 'trap - INT; echo "demo: interrupted" >&2; kill -INT $$' INT

# What the libraries say goes into a log, $1; the user sees what matters.
quietly() { "${@:2}" >"$1" 2>&1 || failed "$1"; }

failed() {
  printf 'demo: error: %s; whole log: %s\n' "$(tail -n 1 "$1")" "$1" >&2
  exit 1
}

# The evaluation at its end draws the first image of every second batch.
train() {
  "$python" tools/train.py "$config" --data-root "$data" --work-dir "$out" \
    --cfg-options default_hooks.visualization.draw=True \
    default_hooks.visualization.interval=2 2>&1 |
    tee "$out/train.log" | sed -nuE '
      s/.*Iter\(train\) \[ *([0-9]+)\/([0-9]+)\].* eta: ([0-9:]+) .* loss: ([0-9.]+).*/  iteration \1 of \2  loss \4  \3 left/p
      s/.*Iter\(val\) \[ *([0-9]+)\/([0-9]+)\].*/  evaluation: batch \1 of \2/p'
}

rm -rf "$out"
mkdir -p "$out/drawn"
say 'drawing the dataset'
quietly "$out/data.log" "$python" tools/make_mini_coco.py "$data"
say "starting the training; log: $out/train.log"
train || failed "$out/train.log"
# They lie beside the figures of TNSHook.
mv "$out"/*/vis_data/vis_image/val_img_*.png "$out/drawn"

say 'drawing the TNS curve, measuring the stiffness of the trained network'
# Both mostly start up, on one core each.
quietly "$out/tns.log" "$python" tools/analysis/plot.py training "$out" &
curve=$!
quietly "$out/measure.log" "$python" tools/analysis/measure_stiffness.py \
  "$config" "$(cat "$out/last_checkpoint")" --data-root "$data" --name 'R-34 + StepNet'
wait "$curve"
say 'writing the report'
quietly "$out/report.log" "$python" tools/analysis/plot.py report "$out"

echo
echo 'AP on the validation images (pycocotools):'
grep -E '^ Average Precision' "$out/train.log"
echo
echo 'TNS trend:'
grep -E '^ +(step|[0-9])' "$out/tns.log"
echo
echo "detections (left: annotation, right: prediction): $out/drawn"
echo "TNS curve:                                        $out/tns.png"
echo "stiffness report (HTML):                          $out/report.html"
echo "one picture again: python tools/predict.py $config $(cat "$out/last_checkpoint") $data/val2017/000000000001.jpg --steps"
echo "demo: done $((SECONDS - start)) s after set-up"
