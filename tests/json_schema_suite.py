"""The official JSON-Schema-Test-Suite, as the source distribution of `jsonschema` carries it.

`python tests/json_schema_suite.py` puts that into the environment it runs in, once; the tests read it from there.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "4.26.0"
SHA256 = "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326"
ARCHIVE = Path(sys.prefix) / f"jsonschema-{VERSION}.tar.gz"
FOLDER = f"jsonschema-{VERSION}/json/tests/draft2020-12/"
MISSING = "the official test suite is not here: `make suite` fetches it"
SECONDS = 120


def read():
    """Return the contents of the suite's files for 2020-12 by their names without suffix; empty if it is not here."""
    if not ARCHIVE.exists():
        return {}
    with tarfile.open(ARCHIVE) as archive:
        members = [one for one in archive.getmembers() if one.name.startswith(FOLDER) and one.name.endswith(".json")]
        texts = {one.name[len(FOLDER) : -len(".json")]: archive.extractfile(one).read() for one in members}
    return {name: json.loads(texts[name]) for name in sorted(texts)}


def fetch():
    """Take the archive by its name and hash from where pip takes packages, if it is not here yet."""
    if ARCHIVE.exists():
        return
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
        wanted = Path(folder) / "wanted.txt"
        wanted.write_text(f"jsonschema=={VERSION} --hash=sha256:{SHA256}\n")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "jsonschema"]
        options = ["--timeout", "10", "--retries", "1", "--require-hashes", "--dest", folder]
        subprocess.run([*pip, *options, "-r", str(wanted)], check=True, timeout=SECONDS)
        (Path(folder) / ARCHIVE.name).replace(ARCHIVE)


if __name__ == "__main__":
    try:
        fetch()
    except (subprocess.SubprocessError, OSError) as error:
        sys.stderr.write(f"its tests are skipped, since {MISSING} ({type(error).__name__})\n")
