"""Entry of the sandbox's processes (``python -I -S <this folder>``): only finds the package that it lies in."""

import importlib
import os
import sys

if __name__ == "__main__":
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[0] = os.path.dirname(folder)
    start = importlib.import_module(f"{os.path.basename(folder)}.launcher")
    del sys.path[0]
    start.main()
