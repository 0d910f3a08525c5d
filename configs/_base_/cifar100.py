_base_ = './cifar10.py'

data_preprocessor = dict(num_classes=100)
train_dataloader = dict(
    dataset=dict(type='FolderCIFAR100', data_root='data/cifar100'))
val_dataloader = dict(
    dataset=dict(type='FolderCIFAR100', data_root='data/cifar100'))
test_dataloader = val_dataloader
