"""The version of this package, which setup.py reads."""
__version__ = '0.1.0'
