"""One library where no binding is under test."""
import pytest


@pytest.fixture(params=['mmpretrain'])
def models(request):
    """Its registry; ``equality.BOTH`` asks for both in turn."""
    return pytest.importorskip(f'{request.param}.registry').MODELS
