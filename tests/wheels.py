"""Wheels of a tiny library, written by hand: nothing is built and nothing comes from an index."""

import zipfile


def write_wheel(folder, name, version, files=None, *, metadata="", entry_points=None):
    """Write a wheel of pure Python into *folder*: a module that knows its version, unless *files* are given."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    inside = dict(files or {f"{name}.py": f"VERSION = {version!r}\n"})
    inside[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}"
    inside[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if entry_points is not None:
        inside[f"{info}/entry_points.txt"] = entry_points
    listed = "".join(f"{path},,\n" for path in [*inside, f"{info}/RECORD"])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in {**inside, f"{info}/RECORD": listed}.items():
            archive.writestr(inner, text)
    return path


def only_from(monkeypatch, folder):
    """Let installers find packages in *folder*, and nowhere else."""
    for name, value in {"FIND_LINKS": str(folder), "NO_INDEX": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
        monkeypatch.setenv(f"UV_{name}", value)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
