"""What works with finished runs; a package so that tests can import it."""
