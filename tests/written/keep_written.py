"""Keeps the ONNX files that tests write, as tests/keep_written.h does for those in C++."""
import hashlib
import os
import pathlib


def keep_written(folder, writer):
    """Copies every .onnx below `folder` into the folder that $SUPERSTEP_KEEP_WRITTEN names, called by what it holds, beside a
    text that says who wrote it; into broken/ there, where `broken` is in its path: it is no model on purpose."""
    kept = os.environ.get("SUPERSTEP_KEEP_WRITTEN")
    folder = pathlib.Path(folder)
    for file in sorted(folder.rglob("*.onnx")) if kept else []:
        if not file.is_file():
            continue
        name, data = file.relative_to(folder.parent), file.read_bytes()
        place = pathlib.Path(kept) / ("broken" if "broken" in str(name) else "")
        number = hashlib.sha256(data).hexdigest()[:32]
        place.mkdir(parents=True, exist_ok=True)
        if not (place / f"{number}.onnx").exists():
            (place / f"{number}.txt").write_text(f"{writer}: {name}\n")
            half = place / f"{number}.{os.getpid()}"
            half.write_bytes(data)
            half.rename(place / f"{number}.onnx")
