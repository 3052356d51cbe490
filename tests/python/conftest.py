import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support import mlp_file  # noqa: E402, F401: a fixture of all files
