"""The scripts, as a package for the tests and for each other: it goes before any other `scripts` found later."""
