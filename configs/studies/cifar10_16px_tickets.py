"""SE in a few blocks (LTH4SA): CIFAR-10 at 16 px, ResNet-56, 5 epochs.

In the k stiffest blocks, or in k random ones (§3.1). Its rows without SE and
with SE in all blocks (the first of each stage too, which are never measured)
are those of cifar10_16px_modules.py.
"""
_base_ = './_base_/cifar10_16px.py'

# Record: stiffness_residual.jsonl of se_seed0, the first run with SE of
# cifar10_16px_modules.py (commit d9a78f2e18ed, after its 5 epochs; 2,000
# images; sha256 of the record e6e97305787e). Stiffest by own area, as
# tools/analysis/stiffest_blocks.py ranks them; random ones are drawn by it
# with seed 0 from the 15 measured blocks.
BLOCKS = dict(
    stiffest3=[[1], [1], [5]],
    random3=[[2], [5], [1]],
    stiffest6=[[1, 2], [1, 2], [1, 5]],
    random6=[[2, 3], [1, 5], [1, 2]],
)
methods = {
    f'se_{name}': dict(
        config='../resnet164/resnet164_se_cifar10.py',
        options={'model.backbone.step_blocks': blocks})
    for name, blocks in BLOCKS.items()
}
methods['se_stiffest3']['baseline'] = 'se_random3'
methods['se_stiffest6']['baseline'] = 'se_random6'
del BLOCKS
pooled = False
