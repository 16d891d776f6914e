"""`python -m gradient_audit`, as a file: tests run files in forked processes."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # makes `gradient_audit` importable from any folder

from gradient_audit.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
