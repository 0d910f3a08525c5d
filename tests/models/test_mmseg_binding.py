"""Bindings to mmsegmentation: networks built and converted."""
import pytest
from equality import assert_bound
from mmengine.config import Config

pytest.importorskip('mmseg')
from mmseg.registry import MODELS  # noqa: E402

from stepnet_mm.config.conversion import to_stepnet  # noqa: E402

#: As its configs have them; another library's networks dilate otherwise.
DILATED = dict(base_channels=8, stem_channels=8, contract_dilation=True,
               strides=(1, 2, 1, 1), dilations=(1, 1, 2, 4))
PSPNET = 'mmseg::pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py'


@pytest.mark.parametrize('kwargs', [
    dict(type='ResNetV1c', depth=18),
    *(pytest.param(kwargs, marks=pytest.mark.long) for kwargs in (
        dict(type='ResNet', depth=50, multi_grid=(1, 2, 4), frozen_stages=1),
        dict(type='ResNetV1d', depth=18, norm_eval=True),
        dict(type='ResNeXt', depth=50, groups=4, with_cp=True)))])
def test_no_step_and_a_step_of_one_keep_the_network(kwargs):
    assert_bound(MODELS, **DILATED, **kwargs)


def test_an_installed_config_is_converted(tmp_path):
    path = tmp_path / 'stepnet.py'
    path.write_text(to_stepnet(PSPNET, str(path)))
    assert Config.fromfile(path).model.backbone.type == 'StepResNetV1c'
