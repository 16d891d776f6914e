"""Processes that start import the script, which starts them again."""

MESSAGES = ("has finished its bootstrapping phase",)
NOT_RUN = "It starts processes. The message is that of Python's multiprocessing/spawn.py."
WHY = """Where processes are not forked (Windows, macOS; Linux since Python 3.14), each worker of a DataLoader imports
the script. Code outside functions then runs again, and starts processes from within a worker."""
CURE = """Put what runs under if __name__ == "__main__":, for example in a function main(). Or num_workers=0."""
