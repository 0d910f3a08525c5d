#!/usr/bin/env bash
# Draws a mini-COCO, trains Faster R-CNN with a StepNet backbone on it,
# evaluates, and ends with the AP table, the TNS trend, two pictures and a
# report of the trained network's stiffness.
#   bash tools/demo.sh      (STACK=openmmlab for the other stack)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export STACK=${STACK:-onedl} VENV=${VENV:-$PWD/.venv/${STACK:-onedl}}
bash tools/setup_env.sh
python=$VENV/bin/python
out=work_dirs/demo
config=configs/faster_rcnn_r34_stepnet_mini_coco.py
start=$SECONDS

rm -rf "$out"
mkdir -p "$out"
"$python" tools/make_mini_coco.py "$out/mini_coco"
echo "demo: training, 360 iterations (log: $out/train.log)"
"$python" tools/train.py "$config" --data-root "$out/mini_coco" \
  --work-dir "$out" 2>&1 | tee "$out/train.log" |
  grep --line-buffered -E 'Iter\(train\) .*loss:|Error' |
  sed -uE 's/.*(Iter\(train\) \[ *[0-9]+\/[0-9]+\]).*eta: ([0-9:]+).* loss: ([0-9.]+).*/  \1  loss \3  eta \2/' ||
  { tail -n 20 "$out/train.log" >&2; exit 1; }
"$python" tools/test.py "$config" "$out/iter_360.pth" \
  --data-root "$out/mini_coco" --work-dir "$out/test" --show-dir "$out/drawn" \
  >"$out/test.log" 2>&1 || { tail -n 20 "$out/test.log" >&2; exit 1; }

echo
echo 'AP on the validation images (pycocotools):'
grep -E '^ Average Precision' "$out/test.log" | tail -n 6
echo
echo 'TNS trend:'
"$python" tools/analysis/plot_training.py "$out" >"$out/tns.txt"
grep -vE 'TNS curve|Could not import' "$out/tns.txt"
"$python" tools/analysis/measure_stiffness.py "$config" "$out/iter_360.pth" \
  --data-root "$out/mini_coco" --name 'R-34 + StepNet' >"$out/measure.log" 2>&1 ||
  { tail -n 20 "$out/measure.log" >&2; exit 1; }
"$python" tools/analysis/make_report.py "$out" >/dev/null
"$python" tools/analysis/contact_sheet.py "$out/drawn" "$out/detections.png" >/dev/null
echo
echo "detections (left: annotation, right: prediction): $out/detections.png"
echo "TNS curve:                                        $out/tns.png"
echo "stiffness report (HTML):                          $out/report.html"
echo "demo: $((SECONDS - start)) s after set-up"
