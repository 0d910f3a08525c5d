"""The version of this package, which setup.py reads."""
__version__ = '1.0.0'
