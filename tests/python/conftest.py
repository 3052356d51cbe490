import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "written")]
import pytest  # noqa: E402
from keep_written import keep_written  # noqa: E402
from support import mlp_file  # noqa: E402, F401: a fixture of all files


@pytest.fixture(scope="session", autouse=True)
def written_files_are_kept(tmp_path_factory):
    yield
    keep_written(tmp_path_factory.getbasetemp(), "tests/python")
