"""What of each backbone of mmdet, mmpretrain and mmseg is measured."""
import re

import pytest
import torch
from equality import undrawn
from mmengine.registry import MODELS

from stepnet_mm.recording import TrajectoryRecorder

RESNET = dict(type='ResNetV1c', depth=18)
STDC = dict(type='STDCNet', stdc_type='STDCNet1', in_channels=3,
            channels=(32, 64, 256, 512, 1024), bottleneck_type='cat',
            num_convs=4, norm_cfg=dict(type='BN'),
            act_cfg=dict(type='ReLU'))
HRNET = {
    f'stage{i}': dict(
        num_modules=1, num_branches=i, block='BASIC' if i > 1 else
        'BOTTLENECK', num_blocks=(2, ) * i, num_channels=(16, 32, 64, 128)[:i])
    for i in range(1, 5)}
#: The number of measured blocks of each stage, or why there is none.
TABLE = """
mmdet.CSPDarknet(): 2 8 8
mmdet.CSPNeXt(): 2 5 5
mmdet.Darknet(): 1 7 7 3
mmdet.DetectoRS_ResNet(depth=50): 2 3 5 2
mmdet.EfficientNet(): 1 1 2 2 3
mmdet.HRNet(extra=HRNET): 1 1 1 1 1 1 1 1 1 1
mmdet.HourglassNet(): 1 1 1 1 1 1 1 1 1 1 1 3 1 1 1 1 1 1 1 1 1 1 1 1 1 1
    1 3 1 1 1 1 1
mmdet.MobileNetV2(): 1 2 3 2 2
mmdet.PyramidVisionTransformer(): 2 3 5 2
mmdet.PyramidVisionTransformerV2(): 2 3 5 2
mmdet.RegNet(arch='regnetx_400mf'): 1 6 11
mmdet.Res2Net(depth=50): 2 3 5 2
mmdet.ResNeSt(depth=50): 2 3 5 2
mmdet.ResNeXt(depth=50): 2 3 5 2
mmdet.ResNet(depth=34): 2 3 5 2
mmdet.SSDVGG(depth=16): SSDVGG, its output has another shape than its
    input
mmdet.SwinTransformer(): 1 1 5 1
mmdet.TridentResNet(depth=50, num_branch=3, test_branch_idx=1,
    trident_dilations=(1, 2, 3), num_stages=3, strides=(1, 2, 2),
    dilations=(1, 1, 1), out_indices=(2, )): 2 3
mmpretrain.BEiTPretrainViT(): 11
mmpretrain.BEiTViT(): 11
mmpretrain.CAEPretrainViT(arch='b', bias='qv_bias',
    layer_scale_init_value=.1): 11
mmpretrain.CSPDarkNet(depth=53): 1 7 7 3
mmpretrain.CSPResNeXt(depth=50): 2 2 4 1
mmpretrain.CSPResNet(depth=50): 2 2 4 1
mmpretrain.Conformer(): 6 11 7 6
mmpretrain.ConvMixer(): 31
mmpretrain.ConvNeXt(): 2 2 8 2
mmpretrain.DaViT(): 1 1 5 1
mmpretrain.DeiT3(): 11
mmpretrain.DenseNet(): DenseLayer, its output has another shape than its
    input
mmpretrain.DistilledVisionTransformer(): 11
mmpretrain.EdgeNeXt(): 1 1 5 1
mmpretrain.EfficientFormer(): 2 1 5 2
mmpretrain.EfficientNet(): 1 1 2 2 3
mmpretrain.EfficientNetV2(): 1 3 3 5 8 14
mmpretrain.HRNet(): 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3
mmpretrain.HiViT(): 3 3 23
mmpretrain.HorNet(): 1 2 17 1
mmpretrain.InceptionV3(): BasicConv2d, its output has another shape than
    its input
mmpretrain.LeNet5(): LeNet5, its output has another shape than its input
mmpretrain.LeViT(arch='128s'): 3 6 8
mmpretrain.MAEHiViT(): 3 3 23
mmpretrain.MAEViT(): 11
mmpretrain.MFFViT(): 11
mmpretrain.MILANViT(): 11
mmpretrain.MViT(): 1 2 15 2
mmpretrain.MaskFeatViT(): 11
mmpretrain.MixMIMPretrainTransformer(): 1 1 17 1
mmpretrain.MixMIMTransformer(): 1 1 17 1
mmpretrain.MlpMixer(): 11
mmpretrain.MoCoV3ViT(arch='base', patch_size=16): 11
mmpretrain.MobileNetV2(): 1 2 3 2 2
mmpretrain.MobileNetV3(): 1 2 1 2
mmpretrain.MobileOne(arch='s0'): MobileOneBlock, its input does not reach
    its output by additions alone
mmpretrain.MobileViT(): 2
mmpretrain.PCPVT(arch='small'): 2 3 5 2
mmpretrain.PoolFormer(): 1 1 5 1
mmpretrain.PyramidVig(arch='tiny'): 3 3 11 3
mmpretrain.RIFormer(): 1 1 5 1
mmpretrain.RegNet(arch='regnetx_400mf'): 1 6 11
mmpretrain.RepLKNet(arch='31B'): 3 3 35 3
mmpretrain.RepMLPNet(arch='B', img_size=256): 1 1 11 1
mmpretrain.RepVGG(arch='A0'): RepVGGBlock, its input does not reach its
    output by additions alone
mmpretrain.Res2Net(depth=50): 2 3 5 2
mmpretrain.ResNeSt(depth=50): 2 3 5 2
mmpretrain.ResNeXt(depth=50): 2 3 5 2
mmpretrain.ResNet(depth=34): 2 3 5 2
mmpretrain.ResNetV1c(depth=34): 2 3 5 2
mmpretrain.ResNetV1d(depth=34): 2 3 5 2
mmpretrain.ResNet_CIFAR(depth=34): 2 3 5 2
mmpretrain.RevVisionTransformer(): RevTransformerEncoderLayer, what it
    adds does not come from its input
mmpretrain.SEResNeXt(depth=50): 2 3 5 2
mmpretrain.SEResNet(depth=50): 2 3 5 2
mmpretrain.SVT(arch='small'): 1 1 9 3
mmpretrain.ShuffleNetV1(): 3 7 3
mmpretrain.ShuffleNetV2(): InvertedResidual, its input does not reach its
    output by additions alone
mmpretrain.SimMIMSwinTransformer(): 1 1 5 1
mmpretrain.SparseConvNeXt(): 2 2 26 2
mmpretrain.SparseResNet(depth=34): 2 3 5 2
mmpretrain.SwinTransformer(): 1 1 5 1
mmpretrain.SwinTransformerV2(): 1 1 5 1
mmpretrain.T2T_ViT(): 13
mmpretrain.TIMMBackbone(model_name='efficientnet_b0', features_only=True):
    1 1 2 2 3
mmpretrain.TNT(): 11
mmpretrain.TinyViT(): 1
mmpretrain.VAN(): 2 2 4 1
mmpretrain.VGG(depth=11): ConvModule, its output has another shape than
    its input
mmpretrain.ViTEVA02(): 11
mmpretrain.ViTSAM(): 11
mmpretrain.Vig(arch='tiny'): 23
mmpretrain.VisionTransformer(): 11
mmpretrain.XCiT(): 11
mmpretrain.iTPNHiViT(): 3 3 23
mmseg.BEiT(): 11
mmseg.BiSeNetV1(backbone_cfg=RESNET): 1 1 1 1
mmseg.BiSeNetV2(): 1 1 3
mmseg.CGNet(): 2 20
mmseg.DDRNet(): 1 1 1 1 1 1
mmseg.ERFNet(): 4 7 1 1
mmseg.FastSCNN(): 2 2 2
mmseg.HRNet(extra=HRNET): 1 1 1 1 1 1 1 1 1 1
mmseg.ICNet(backbone_cfg=RESNET, layer_channels=(128, 512)): 1 1 1 1
mmseg.MAE(): 11
mmseg.MSCAN(): 2 3 5 2
mmseg.MixVisionTransformer(): 2 3 5 2
mmseg.MobileNetV2(): 1 2 3 2 2
mmseg.MobileNetV3(): 1 2 1 2
mmseg.PCPVT(): 2 3 5 2
mmseg.PIDNet(): 1 1 2 2 1 1 1
mmseg.ResNeSt(depth=50): 2 3 5 2
mmseg.ResNet(depth=34): 2 3 5 2
mmseg.ResNetV1c(depth=34): 2 3 5 2
mmseg.STDCContextPathNet(backbone_cfg=STDC, ffm_cfg=dict(in_channels=384,
    out_channels=256)): STDCModule, its output has another shape than its
    input
mmseg.SVT(): 3 3 3
mmseg.SwinTransformer(): 1 1 5 1
mmseg.UNet(): UpConvBlock, its input does not reach its output by
    additions alone
mmseg.VisionTransformer(): 11
"""
ROWS = re.findall(r'^(\w+)\.(\w+)\((.*)\): (.*)$',
                  TABLE.replace('\n    ', ' '), re.M)
#: Others take long in all.
SHORT = {'CSPDarknet', 'ConvMixer', 'DenseNet', 'MobileNetV3', 'RepVGG',
         'RevVisionTransformer', 'ShuffleNetV2', 'SparseResNet',
         'STDCContextPathNet', 'UNet', 'Vig'}


@pytest.mark.parametrize('library, name, arguments, expected', [
    pytest.param(*row, marks=() if row[1] in SHORT else pytest.mark.long,
                 id='.'.join(row[:2])) for row in ROWS])
def test_what_is_measured(library, name, arguments, expected):
    pytest.importorskip(f'{library}.registry')
    if name == 'TIMMBackbone':
        pytest.importorskip('timm')
    with MODELS.switch_scope_and_registry(library) as registry, undrawn():
        net = registry.build(dict(
            eval(f'dict({arguments})'), type=f'{library}.{name}'))
    if expected[0].isupper():
        with pytest.raises(ValueError, match=re.escape(expected)):
            TrajectoryRecorder(net)
        return
    recorder = TrajectoryRecorder(net)
    counts = torch.unique(recorder.stage, return_counts=True)[1].tolist()
    definition = 'output' if 'Sparse' in name else 'residual'
    assert recorder.definition == definition
    assert ' '.join(map(str, counts)) == expected
