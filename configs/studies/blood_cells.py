"""A detector on real images: 364 of blood cells, 1,500 iterations of 4."""
methods = {
    name: dict(
        config=f'../blood_cells/faster_rcnn_r34_{name}_blood_cells.py')
    for name in ('plain', 'se', 'stepnet')
}
methods['constant'] = dict(
    config='../blood_cells/faster_rcnn_r34_plain_blood_cells.py',
    options={'model.backbone.step': dict(type='ConstantStep', _delete_=True)})
seeds = [0, 1, 2]
metric = 'coco/bbox_mAP'
measure = dict(num_samples=87)  # the validation images
