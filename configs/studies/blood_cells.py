"""A detector on blood cells: Faster R-CNN, half ResNet-34, 1,500 iterations.

205 images train it, 4 an iteration; 87 are for validation, 72 for the test.
"""
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
