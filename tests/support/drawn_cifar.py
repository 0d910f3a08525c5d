"""CIFAR-10 in folders of PNG files, that nobody photographed."""
import cv2
import numpy as np


def draw_cifar(root, train, test):
    """So many images a class, with more noise from class to class."""
    from mmpretrain.datasets import CIFAR10
    draws = np.random.default_rng(0)
    for split, count in dict(train=train, test=test).items():
        for label, name in enumerate(CIFAR10.METAINFO['classes']):
            folder = root / split / name
            folder.mkdir(parents=True)
            for i in range(count):
                pixels = draws.normal(128, 5 + 10 * label, (32, 32, 3))
                cv2.imwrite(str(folder / f'{i}.png'),
                            pixels.clip(0, 255).astype('uint8'))
