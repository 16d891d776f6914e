"""Tools for a finished run, for your own script, and for measurements; a package so that tests can import them."""
