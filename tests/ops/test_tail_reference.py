import torch

from stepnet_mm.ops import tail_reference as kernels
from stepnet_mm.ops.tail_reference import Gradients, Moments, Norm


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


def test_measure():
    norm = Norm(torch.tensor([3., 4.]), torch.tensor([1., 5.]), 3.)
    m = kernels.measure(Z, maps([[0., 4.]], [[1., 1.]]), norm)
    assert torch.equal(m.centre, m.mean)  # of one sample
    assert torch.equal(m.scale, table(1.5, 4 / 3**.5))
    assert torch.equal(m.mean_f, table(1., 5.))
    assert torch.equal(m.identity_mean, table(2., 1.))
    still = norm._replace(running=(torch.tensor([0., 2.]),
                                   torch.tensor([1., 6.])))
    m = kernels.measure(Z, None, still)
    assert m.variance is None and m.identity_mean is None
    torch.testing.assert_close(m.scale, table(1.5, 4 / 3))
    torch.testing.assert_close(m.mean_f, table(4., 5.))


def test_output():
    y = kernels.output(Z, maps([[-9., 0.]], [[1., 1.]]), table(4., 3.),
                       table(1., -1.), table(.5, 1.))
    assert torch.equal(y, maps([[0., 6.5]], [[6., 6.]]))


def test_step_gradient():
    grad, y = maps([[1., 2.]], [[3., 4.]]), maps([[0., 6.]], [[6., 0.]])
    masked, total, moment, d_step = kernels.step_gradient(
        grad, y, Z, table(1., 2.), table(2., 1.), table(8., 18.))
    assert torch.equal(masked, maps([[0., 2.]], [[3., 0.]]))
    assert torch.equal(total, table(2., 3.))
    assert torch.equal(moment, table(4., 0.))
    assert torch.equal(d_step, table(28., 60.))


def test_input_gradients_behind_running_statistics():
    g, ones = maps([[1., 2.]], [[3., 4.]]), table(1., 1.)
    m = Moments(table(2., 2.), None, None, ones, table(3., 1.), ones,
                table(1., 2.), ones, table(.5, 2.))
    grads = Gradients(mean_f=table(4., 6.), identity_mean=table(10., 0.))
    dz, dx, weight, bias = kernels.input_gradients(
        g, Z, table(3., 7.), table(1., 0.), table(2., 1.), m, grads)
    # Δt · scale · g, and scale of half the gradient of the mean.
    assert torch.equal(dz, maps([[12., 18.]], [[6., 7.]]))
    assert torch.equal(dx, maps([[6., 7.]], [[3., 4.]]))
    assert torch.equal(bias, table(10., 13.))
    assert torch.equal(weight, table(6., 0.))


def test_tables_are_float32_beside_half_precision():
    z = Z.bfloat16()
    m = kernels.measure(z, z, Norm(None, None, 1.))
    assert {t.dtype for t in m} == {torch.float32}
    y = kernels.output(z, z, m.scale, m.shift, m.mean)
    assert y.dtype == torch.bfloat16
