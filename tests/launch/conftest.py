"""A report, as the doctor's checks take one."""
import pytest

from stepnet_mm.launch.report import Report


@pytest.fixture
def report():
    return Report()


@pytest.fixture
def printed(capsys):
    """printed() -> what was printed since the last call."""
    return lambda: capsys.readouterr().out
