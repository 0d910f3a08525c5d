# The four methods of cifar10_16px_modules.py that other settings are tried with.
_base_ = './cifar10_16px.py'

START = 0.2689414213699951  # sigmoid(-1), where StepAdaptor starts
methods = {
    name: dict(
        config=f'../resnet164/resnet164_{name}_cifar10.py',
        paper=f'resnet164_{name}_cifar10')
    for name in ('plain', 'se', 'stepnet')
}
methods.update(
    constant=dict(
        config='../resnet164/resnet164_plain_cifar10.py',
        options={
            'model.backbone.step':
            dict(type='ConstantStep', value=START, _delete_=True)
        }))
del START
