"""Puts the licenses of what a wheel bundles into it, and what it is made of.

    licenses.py WHEEL PROGRAM     LICENSE, NOTICE, licenses/third-party/PACKAGE.txt of every package that the program links or the
                                  wheel holds a library of, and sboms/superstep.spdx.json, into the wheel's .dist-info

Ends with 1 where a library of the wheel is from no package whose license is here: such a wheel must not be given away.
"""
import pathlib
import re
import subprocess
import sys
import zipfile

import join

source = pathlib.Path(__file__).resolve().parents[1]


def bundled(files):
    """Shared libraries that were packed into the wheel, under their own names: auditwheel put a digest into them."""
    names = [pathlib.PurePath(name).name for name in files if ".libs/" in name and ".so" in name]
    return {re.sub(r"-[0-9a-f]{8}(?=\.)", "", name) for name in names}


def package_of(library):
    """The package that a library is from; none: dpkg knows of none, or is not here."""
    try:
        said = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        return None
    return said.split(":")[0].split(",")[0] or None


def license_of(package):
    file = pathlib.Path("/usr/share/doc") / package / "copyright"
    return file.read_bytes() if file.is_file() else None


def packages_of(document):
    """The packages of an SPDX document of the program."""
    return set(re.findall(r"pkg:deb/debian/([^@\"]+)@", document))


def additions(files, document):
    """Names and contents of what is put in; a library without a license is an error."""
    found = {"licenses/LICENSE": (source / "LICENSE").read_bytes(), "licenses/NOTICE": (source / "NOTICE").read_bytes(),
             "sboms/superstep.spdx.json": document.encode()}
    owners = {library: package_of(library) for library in sorted(bundled(files))}
    without = [library for library, package in owners.items() if package is None or license_of(package) is None]
    if without:
        sys.exit(f"licenses: no license is found of {', '.join(without)}")
    for package in sorted(set(owners.values()) | packages_of(document)):
        if text := license_of(package):
            found[f"licenses/third-party/{package}.txt"] = text
    return found


def main():
    wheel, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    document = subprocess.run([source / "tools/sbom", "--program", program], capture_output=True, text=True, check=True).stdout
    files = join.contents(wheel)
    folder = join.information_of(files).removesuffix("WHEEL")
    for name, data in additions(files, document).items():
        files[folder + name] = zipfile.ZipInfo(folder + name), data
    written = wheel.with_suffix(".new")
    join.pack(written, files)
    written.replace(wheel)


if __name__ == "__main__":
    main()
