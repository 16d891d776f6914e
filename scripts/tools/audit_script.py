"""`python -m gradient_audit`, for command lines of before."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])  # makes `gradient_audit` importable from any folder

from gradient_audit.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
