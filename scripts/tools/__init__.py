"""Tools for a finished run, for your own script, and for measuring, as a package for the tests."""
