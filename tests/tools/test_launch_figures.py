"""The pictures of docs/distributed.md."""
import cv2
import pytest


def test_a_config_and_a_preemption(printed, load_tool, tmp_path):
    pytest.importorskip('mmdet')
    module = load_tool('analysis/launch_figures')
    assert {name for *_, name in module.changes_of(module.CONFIG)
            } == set(module.WHY)
    for line in printed('analysis/launch_figures', tmp_path).splitlines():
        assert cv2.imread(line).std() > 0
