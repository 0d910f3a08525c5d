"""Table 3: Faster R-CNN with R-50 and R-101 on COCO, one run each."""
_base_ = './_base_/paper.py'

methods = {
    f'r{depth}_{name}': dict(
        config=f'../faster_rcnn_r{depth}_{name}.py',
        paper=f'faster_rcnn_r{depth}_{name}')
    for depth in (50, 101)
    for name in ('plain', 'se', 'eca', 'sge', 'stepnet')
}
seeds = [0]
metric = 'coco/bbox_mAP'
