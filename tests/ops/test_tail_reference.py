import torch

from stepnet_mm.ops import tail_reference as kernels


def table(*values):
    return torch.tensor(values)[None, :, None, None]


def maps(*values):
    return torch.tensor(values)[None]


Z = maps([[1., 3.]], [[2., 2.]])


def test_moments():
    mean, var = kernels.moments(Z, True)
    assert torch.equal(mean, table(2., 2.))
    assert torch.equal(var, table(1., 0.))
    assert kernels.moments(Z, False)[1] is None


def test_scale_add_relu():
    y = kernels.scale_add_relu(
        Z, maps([[-9., 0.]], [[1., 1.]]), table(2., 3.), table(.5, -1.))
    assert torch.equal(y, maps([[0., 6.5]], [[6., 6.]]))


def test_mask_and_sum():
    grad, y = maps([[1., 2.]], [[3., 4.]]), maps([[0., 6.]], [[6., 0.]])
    masked, total, moment = kernels.mask_and_sum(grad, y, Z, table(1., 2.))
    assert torch.equal(masked, maps([[0., 2.]], [[3., 0.]]))
    assert torch.equal(total, table(2., 3.))
    assert torch.equal(moment, table(4., 0.))


def test_input_gradients():
    g = maps([[1., 2.]], [[3., 4.]])
    dz, dx = kernels.input_gradients(
        g, Z, table(2., 1.), table(10., 0.), table(.5, .25), table(7., 8.))
    assert torch.equal(dz, maps([[12.5, 34.5]], [[3.25, 4.25]]))
    assert torch.equal(dx, maps([[8., 9.]], [[11., 12.]]))
    dz, dx = kernels.input_gradients(
        g, Z, table(2., 1.), None, table(.5, .25), None)
    assert torch.equal(dz, maps([[2.5, 4.5]], [[3.25, 4.25]]))
    assert dx is g


def test_tables_are_float32_beside_half_precision():
    z = Z.bfloat16()
    mean, var = kernels.moments(z, True)
    assert mean.dtype == var.dtype == torch.float32
    assert kernels.scale_add_relu(z, z, mean, var).dtype == torch.bfloat16
