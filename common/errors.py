"""What ends a run with one line in place of a traceback."""


class BadInput(Exception):
    """The input cannot work. The message is one line: the option or file, what is wrong, what to do."""


class Stopped(Exception):
    """A run has started but cannot continue. The message is one line: what happened, and what has been saved."""
