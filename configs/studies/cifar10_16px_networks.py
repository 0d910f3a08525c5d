"""Other networks, with a step each: CIFAR-10 at 16 px, 5 epochs.

Set before the runs, for a constant Δt of 0.27 and StepNet in every block with
an identity shortcut. A method gains if Dunnett's interval of its difference to
the same network's plain one is above 0. In a network the two follow the same
law if they are equal to within 1.2 points (two one-sided t tests at 5 %), else
it is not decided. The hypothesis: only networks whose blocks end in a ReLU
gain. It is refuted if MobileNetV2, ConvNeXt or Swin gains by either method, or
if Res2Net does by neither.

Res2Net is the one whose blocks end in a ReLU, and not SEResNet: SE's gates of
about 0.5 are a step size already. So are last norms that start at 0, here at
1, and ConvNeXt's LayerScale of 1e-6, which `ConvNeXt_layer_scale` keeps and
the other three do without. Res2Net and MobileNetV2 (mmseg's, which takes
strides) have the ResNets' recipe, ConvNeXt and Swin the ViT's.
"""
_base_ = './_base_/cifar10_16px_data.py'

RESNET = '../resnet164/resnet164_plain_cifar10.py'
VIT = '../vit/vit_plain_cifar10.py'
# Recipe, channels of the last map, which is of 2 x 2, and backbone.
NETWORKS = dict(
    Res2Net=(RESNET, 768, dict(
        type='StepRes2Net', depth=50, stem_channels=32, base_channels=24,
        base_width=10, strides=(1, 1, 2, 1), zero_init_residual=False)),
    MobileNetV2=(RESNET, 240, dict(
        type='mmseg.StepMobileNetV2', widen_factor=0.75,
        strides=(1, 1, 2, 2, 1, 1, 1))),
    ConvNeXt=(VIT, 192, dict(
        type='StepConvNeXt', stem_patch_size=2, out_indices=(2, ),
        arch=dict(depths=[2, 4, 2], channels=[48, 96, 192]),
        gap_before_final_norm=False, layer_scale_init_value=0)),
    Swin=(VIT, 192, dict(
        type='StepSwinTransformer', img_size=16, patch_size=2,
        out_indices=(2, ), drop_path_rate=0.,
        arch=dict(embed_dims=48, depths=[2, 4, 2], num_heads=[2, 4, 8]),
        stage_cfgs=[dict(window_size=size) for size in (4, 4, 2)])))
STEPS = dict(
    plain=None,
    # At sigmoid(-1), where StepAdaptor starts.
    constant=dict(type='ConstantStep', value=0.2689414213699951),
    stepnet=dict(type='StepAdaptor'))

methods = {
    f'{network}_{name}': dict(
        config=recipe,
        options={
            'model.backbone': dict(backbone, step=step, _delete_=True),
            'model.neck': dict(type='GlobalAveragePooling'),
            'model.head.in_channels': channels
        },
        baseline=f'{network}_plain' if step else '')
    for network, (recipe, channels, backbone) in NETWORKS.items()
    for name, step in STEPS.items()
}
methods['ConvNeXt_layer_scale'] = dict(
    methods['ConvNeXt_plain'],
    baseline='ConvNeXt_plain',
    options={
        **methods['ConvNeXt_plain']['options'],
        'model.backbone.layer_scale_init_value': 1e-6
    })
del RESNET, VIT, NETWORKS, STEPS
