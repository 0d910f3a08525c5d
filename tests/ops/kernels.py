"""Compares a module of tail kernels with the reference."""
import torch

from stepnet_mm.ops import tail_reference

SHAPES = [(2, 5, 3, 3), (3, 70, 7, 9), (1, 3, 50, 60), (2, 4, 1, 1),
          (1, 1, 1, 5)]
TOLERANCES = {
    torch.float64: dict(atol=1e-12, rtol=1e-12),
    torch.float32: dict(atol=2e-4, rtol=2e-5),
    torch.bfloat16: dict(atol=4e-2, rtol=2e-2),
    torch.float16: dict(atol=6e-3, rtol=4e-3)
}


def make(shape, dtype, layout=torch.contiguous_format):
    """Four maps (z, x, y, grad) and four tables."""
    torch.manual_seed(0)
    z, x, y, grad = [
        torch.randn(shape).to(dtype).contiguous(memory_format=layout)
        for _ in range(4)
    ]
    wide = torch.promote_types(dtype, torch.float32)
    tables = torch.randn(4, *shape[:2], 1, 1, dtype=wide)
    return (z, x, y.relu(), grad), tables.unbind()


def assert_kernels(kernels, shape, dtype, layout=torch.contiguous_format):
    """All kernels of a module equal the reference within its bounds."""
    (z, x, y, grad), (a, b, c, d) = make(shape, dtype, layout)
    bounds = TOLERANCES[dtype]

    def same(name, *args):
        want = getattr(tail_reference, name)(*args)
        copies = [v.clone() if name == 'input_gradients' and i == 0 else v
                  for i, v in enumerate(args)]
        before = [v.clone() if torch.is_tensor(v) else v for v in copies]
        got = getattr(kernels, name)(*copies)
        # input_gradients alone writes, over its first argument.
        for v, old in list(zip(copies, before))[name == 'input_gradients':]:
            assert v is old or torch.equal(v, old), name
        pairs = [(got, want)] if name == 'scale_add_relu' else zip(got, want)
        for one, other in pairs:
            if other is None:
                assert one is None
                continue
            assert one.dtype == other.dtype, name
            torch.testing.assert_close(one, other, **bounds)

    for variance in (True, False):
        same('moments', z, variance)
    same('scale_add_relu', z, x, a, b)
    same('mask_and_sum', grad, y, z, a)
    same('mask_and_sum', grad[:, :, :1, :1].expand(shape), y, z, a)
    for has_b in (b, None):
        for has_d in (d, None):
            same('input_gradients', grad, z, a, has_b, c, has_d)
    assert_not_finite(kernels, z, x)


def assert_not_finite(kernels, z, x):
    """NaN and inf are not swallowed by the ReLU."""
    z = z.clone()
    z[0, 0, 0, 0], z[-1, -1, -1, -1] = torch.nan, torch.inf
    one = torch.ones_like(tail_reference.moments(x, False)[0])
    y = kernels.scale_add_relu(z, x, one, 0 * one)
    assert y[0, 0, 0, 0].isnan() and y[-1, -1, -1, -1].isinf()
