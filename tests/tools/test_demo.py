"""tools/demo.sh, with a Python that only says what the tools would say."""
import shutil
import subprocess

import pytest

PYTHON = '''#!/usr/bin/env bash
echo "$@" >>calls
echo "Could not import OneDL. Skipping OneDL datasets."
case "$1 $2" in
*"$BROKEN".py*) echo "ValueError: $BROKEN broke"; exit 1 ;;
*/train.py*)
  run=work_dirs/demo/20250101/vis_data/vis_image
  mkdir -p $run
  touch $run/val_img_40.png $run/stiffness_nsi_40.png
  echo work_dirs/demo/iter_40.pth >work_dirs/demo/last_checkpoint
  printf '11/22 - mmengine - INFO - Iter(train) [20/40]  lr: 1.0e-03  '
  echo 'eta: 0:00:09  time: 0.4  loss: 1.5000  loss_bbox: 0.1'
  echo "11/22 - mmengine - INFO - Iter(val) [10/15]    eta: 0:00:01"
  echo " Average Precision  (AP) @[ IoU=0.50 ] = 0.900" ;;
*'plot.py training'*)
  echo '           step             tns'
  echo '             20             0.1' ;;
esac
'''


@pytest.mark.parametrize('broken', ['none', 'measure_stiffness'])
def test_it_says_what_the_user_needs_and_nothing_else(
        tmp_path, request, monkeypatch, broken):
    """An error is one line that names the log."""
    tools, python = tmp_path / 'tools', tmp_path / '.venv/onedl/bin/python'
    tools.mkdir()
    python.parent.mkdir(parents=True)
    shutil.copy(request.config.rootpath / 'tools/demo.sh', tools)
    (tools / 'setup_env.sh').touch()
    python.write_text(PYTHON)
    python.chmod(0o755)
    for name in 'STACK', 'TORCH', 'VENV':
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('BROKEN', broken)
    done = subprocess.run(['bash', tools / 'demo.sh'], capture_output=True,
                          text=True)
    calls = (tmp_path / 'calls').read_text()
    assert 'OneDL' not in done.stdout and 'mmengine' not in done.stdout
    if broken != 'none':
        assert done.returncode == 1 and 'plot.py report' not in calls
        said, _, log = done.stderr.rstrip('\n').partition('; whole log: ')
        assert said == 'demo: error: ValueError: measure_stiffness broke'
        assert 'OneDL' in (tmp_path / log).read_text()
        return
    assert done.returncode == 0 and not done.stderr
    assert {'  iteration 20 of 40  loss 1.5000  0:00:09 left',
            '  evaluation: batch 10 of 15',
            ' Average Precision  (AP) @[ IoU=0.50 ] = 0.900',
            '             20             0.1'} <= {*done.stdout.splitlines()}
    drawn = tmp_path / 'work_dirs/demo/drawn'
    assert [path.name for path in drawn.iterdir()] == ['val_img_40.png']
    assert ' work_dirs/demo/iter_40.pth ' in calls
