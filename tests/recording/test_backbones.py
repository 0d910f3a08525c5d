"""What of each backbone of mmdet, mmpretrain and mmseg is measured."""
import re

import pytest
import torch
from equality import HRNET, undrawn
from mmengine.registry import MODELS

from stepnet_mm.recording import TrajectoryRecorder

#: Arguments in the table.
PARTS = dict(
    HRNET=HRNET, RESNET=dict(type='ResNetV1c', depth=18), STDC=dict(
        type='STDCNet', stdc_type='STDCNet1', in_channels=3, num_convs=4,
        channels=(32, 64, 256, 512, 1024), bottleneck_type='cat',
        norm_cfg=dict(type='BN'), act_cfg=dict(type='ReLU')))
#: The number of measured blocks of each stage, or why there is none.
TABLE = """
mmdet: 2 8 8: CSPDarknet
mmdet: 2 5 5: CSPNeXt
mmdet: 1 7 7 3: Darknet
mmdet: 2 3 5 2: DetectoRS_ResNet(depth=50); PyramidVisionTransformer;
    PyramidVisionTransformerV2; Res2Net(depth=50); ResNeSt(depth=50);
    ResNeXt(depth=50); ResNet(depth=34)
mmdet: 1 1 2 2 3: EfficientNet
mmdet: 1 1 1 1 1 1 1 1 1 1 1 1 1: HRNet(extra=HRNET)
mmdet: 1 1 1 1 1 1 1 1 1 1 1 3 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 3 1 1 1 1 1:
    HourglassNet
mmdet: 1 2 3 2 2: MobileNetV2
mmdet: 1 6 11: RegNet(arch='regnetx_400mf')
mmdet: SSDVGG, its output has another shape than its input: SSDVGG(depth=16)
mmdet: 1 1 5 1: SwinTransformer
mmdet: 2 3: TridentResNet(depth=50, num_branch=3, test_branch_idx=1,
    trident_dilations=(1, 2, 3), num_stages=3, strides=(1, 2, 2),
    dilations=(1, 1, 1), out_indices=(2, ))
mmpretrain: 11: BEiTPretrainViT; BEiTViT; CAEPretrainViT(arch='b',
    bias='qv_bias', layer_scale_init_value=.1); DeiT3;
    DistilledVisionTransformer; MAEViT; MFFViT; MILANViT; MaskFeatViT;
    MlpMixer; MoCoV3ViT(arch='base', patch_size=16); TNT; ViTEVA02; ViTSAM;
    VisionTransformer; XCiT
mmpretrain: 1 7 7 3: CSPDarkNet(depth=53)
mmpretrain: 2 2 4 1: CSPResNeXt(depth=50); CSPResNet(depth=50); VAN
mmpretrain: 6 11 7 6: Conformer
mmpretrain: 31: ConvMixer
mmpretrain: 2 2 8 2: ConvNeXt
mmpretrain: 1 1 5 1: DaViT; EdgeNeXt; PoolFormer; RIFormer;
    SimMIMSwinTransformer; SwinTransformer; SwinTransformerV2
mmpretrain: DenseLayer, its output has another shape than its input: DenseNet
mmpretrain: 2 1 5 2: EfficientFormer
mmpretrain: 1 1 2 2 3: EfficientNet; TIMMBackbone(model_name='efficientnet_b0',
    features_only=True)
mmpretrain: 1 3 3 5 8 14: EfficientNetV2
mmpretrain: 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3: HRNet
mmpretrain: 3 3 23: HiViT; MAEHiViT; iTPNHiViT
mmpretrain: 1 2 17 1: HorNet
mmpretrain: BasicConv2d, its output has another shape than its input:
    InceptionV3
mmpretrain: LeNet5, its output has another shape than its input: LeNet5
mmpretrain: 3 6 8: LeViT(arch='128s')
mmpretrain: 1 2 15 2: MViT
mmpretrain: 1 1 17 1: MixMIMPretrainTransformer; MixMIMTransformer
mmpretrain: 1 2 3 2 2: MobileNetV2
mmpretrain: 1 2 1 2: MobileNetV3
mmpretrain: MobileOneBlock, its input does not reach its output by additions
    alone: MobileOne(arch='s0')
mmpretrain: 2: MobileViT
mmpretrain: 2 3 5 2: PCPVT(arch='small'); Res2Net(depth=50); ResNeSt(depth=50);
    ResNeXt(depth=50); ResNet(depth=34); ResNetV1c(depth=34);
    ResNetV1d(depth=34); ResNet_CIFAR(depth=34); SEResNeXt(depth=50);
    SEResNet(depth=50); SparseResNet(depth=34)
mmpretrain: 3 3 11 3: PyramidVig(arch='tiny')
mmpretrain: 1 6 11: RegNet(arch='regnetx_400mf')
mmpretrain: 3 3 35 3: RepLKNet(arch='31B')
mmpretrain: 1 1 11 1: RepMLPNet(arch='B', img_size=256)
mmpretrain: RepVGGBlock, its input does not reach its output by additions
    alone: RepVGG(arch='A0')
mmpretrain: RevTransformerEncoderLayer, what it adds does not come from its
    input: RevVisionTransformer
mmpretrain: 1 1 9 3: SVT(arch='small')
mmpretrain: 3 7 3: ShuffleNetV1
mmpretrain: InvertedResidual, its input does not reach its output by additions
    alone: ShuffleNetV2
mmpretrain: 2 2 26 2: SparseConvNeXt
mmpretrain: 13: T2T_ViT
mmpretrain: 1: TinyViT
mmpretrain: ConvModule, its output has another shape than its input:
    VGG(depth=11)
mmpretrain: 23: Vig(arch='tiny')
mmseg: 11: BEiT; MAE; VisionTransformer
mmseg: 1 1 1 1: BiSeNetV1(backbone_cfg=RESNET); ICNet(backbone_cfg=RESNET,
    layer_channels=(128, 512))
mmseg: 1 1 3: BiSeNetV2
mmseg: 2 20: CGNet
mmseg: 1 1 1 1 1 1: DDRNet
mmseg: 4 7 1 1: ERFNet
mmseg: 2 2 2: FastSCNN
mmseg: 1 1 1 1 1 1 1 1 1 1 1 1 1: HRNet(extra=HRNET)
mmseg: 2 3 5 2: MSCAN; MixVisionTransformer; PCPVT; ResNeSt(depth=50);
    ResNet(depth=34); ResNetV1c(depth=34)
mmseg: 1 2 3 2 2: MobileNetV2
mmseg: 1 2 1 2: MobileNetV3
mmseg: 1 1 2 2 1 1 1: PIDNet
mmseg: STDCModule, its output has another shape than its input:
    STDCContextPathNet(backbone_cfg=STDC, ffm_cfg=dict(in_channels=384,
    out_channels=256))
mmseg: 3 3 3: SVT
mmseg: 1 1 5 1: SwinTransformer
mmseg: UpConvBlock, its input does not reach its output by additions alone:
    UNet
"""
ROWS = [
    (library, *network.removesuffix(')').partition('(')[::2], expected)
    for library, expected, networks in re.findall(
        '^(.*): (.*): (.*)$', TABLE.replace('\n    ', ' '), re.M)
    for network in networks.split('; ')]
#: Others take long in all.
SHORT = {'CSPDarknet', 'ConvMixer', 'DenseNet', 'MobileNetV3', 'RepVGG',
         'RevVisionTransformer', 'ShuffleNetV2', 'SparseResNet',
         'STDCContextPathNet', 'UNet', 'Vig'}


@pytest.mark.parametrize('library, name, arguments, expected', [
    pytest.param(*row, marks=() if row[1] in SHORT else pytest.mark.long,
                 id='.'.join(row[:2])) for row in ROWS])
def test_what_is_measured(library, name, arguments, expected):
    pytest.importorskip(f'{library}.registry')
    with MODELS.switch_scope_and_registry(library) as registry, undrawn():
        net = registry.build(dict(
            eval(f'dict({arguments})', PARTS), type=f'{library}.{name}'))
    if expected[0].isupper():
        with pytest.raises(ValueError, match=re.escape(expected)):
            TrajectoryRecorder(net)
        return
    recorder = TrajectoryRecorder(net)
    counts = torch.unique(recorder.stage, return_counts=True)[1].tolist()
    definition = 'output' if 'Sparse' in name else 'residual'
    assert recorder.definition == definition
    assert ' '.join(map(str, counts)) == expected
