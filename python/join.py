"""Joins wheels of one version that were built for several kinds of interpreter into one that serves them all.

    join.py FOLDER WHEEL...     writes FOLDER/superstep-VERSION-TAGS.whl and prints its path

The wheels have the same files but for the module: each interpreter looks for the one with a name that it knows
(`_core.cpython-311-*.so` before `_core.abi3.so`, which 3.11 would find last and never reaches).
"""
import base64
import hashlib
import pathlib
import sys
import zipfile


def contents(wheel):
    """Files of a wheel by name: how they are kept, and their bytes."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: (entry, archive.read(entry)) for entry in archive.infolist() if not entry.is_dir()}


def joined(wheels):
    """All files of the wheels; what differs where it must not is an error."""
    files = {}
    for found in map(contents, wheels):
        for name, (entry, data) in found.items():
            told_apart = name.endswith((".dist-info/WHEEL", ".dist-info/RECORD"))
            if name in files and files[name][1] != data and not told_apart:
                sys.exit(f"join: the wheels have different files {name}")
            files.setdefault(name, (entry, data))
    return files


def tags_of(wheels):
    """Of each wheel: interpreter, binary interface, platform."""
    return [wheel.stem.split("-")[2:] for wheel in wheels]


def together(tags, place):
    return ".".join(dict.fromkeys(tag[place] for tag in tags))


def information_of(files):
    """The name of the file that says what the wheel is for."""
    return next(name for name in files if name.endswith(".dist-info/WHEEL"))


def pack(file, files):
    """Writes them as a wheel, with a record of what they are now."""
    record = information_of(files).replace("/WHEEL", "/RECORD")
    lines = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (entry, data) in files.items():
            if name == record:
                continue
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}")
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
        archive.writestr(files[record][0], "\n".join([*lines, f"{record},,", ""]))


def write(file, files, tags):
    information = information_of(files)
    entry, text = files[information]
    kept = [line for line in text.decode().splitlines() if line and not line.startswith("Tag:")]
    files[information] = entry, "\n".join([*kept, *("Tag: " + "-".join(tag) for tag in tags), ""]).encode()
    pack(file, files)


def main():
    folder, wheels = pathlib.Path(sys.argv[1]), [pathlib.Path(word) for word in sys.argv[2:]]
    tags = tags_of(wheels)
    name = "-".join(wheels[0].stem.split("-")[:2])
    file = folder / f"{name}-{together(tags, 0)}-{together(tags, 1)}-{together(tags, 2)}.whl"
    write(file, joined(wheels), tags)
    print(file)


if __name__ == "__main__":
    main()
