"""A real PostgreSQL for tests: on loopback, in a folder of its own, gone afterwards."""

import contextlib
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs


class PostgresMissingError(Exception):
    """There is no PostgreSQL that could be started here."""


@attrs.frozen
class Server:
    """A PostgreSQL that runs."""

    binaries: Path
    folder: Path
    port: int
    password: str = attrs.field(repr=False)
    user: str = "tester"
    host: str = "127.0.0.1"
    _spare: list[str] = attrs.field(factory=list, repr=False)

    def url(self, database: str) -> str:
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{database}"

    def restart(self) -> None:
        """Stop the server, which ends every connection, and start it again on the same port."""
        self._control("-m", "fast", "-w", "restart")

    def _control(self, *arguments: str) -> None:
        _run(self.binaries / "pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", *arguments)


@contextlib.contextmanager
def start_postgres() -> Iterator[Server]:
    """Run a server; raise PostgresMissingError if there is none to run."""
    binaries = find_binaries()
    with _folder() as folder:
        server = Server(binaries, folder, _free_port(), secrets.token_hex(12))
        _initialise(server)
        server._control("-o", _options(server), "-w", "start")
        try:
            yield server
        finally:
            server._control("-m", "immediate", "-w", "stop")


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder that is removed in the end, and its server stopped, even if this process is killed."""
    folder = Path(tempfile.mkdtemp(prefix="agentos-pg-", dir="/tmp"))
    if os.getuid() == 0:
        account = pwd.getpwnam(_account())
        os.chown(folder, account.pw_uid, account.pw_gid)
    script = 'cat; test -e "$1/data/postmaster.pid" && kill -QUIT $(head -n 1 "$1/data/postmaster.pid"); rm -rf "$1"'
    watch = subprocess.Popen(["/bin/sh", "-c", script, "watch", folder], stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield folder
    finally:
        watch.communicate()  # the end of its input is what it waits for


def fresh_database(server: Server) -> str:
    """Return the URL, with the password in it, of an empty database: a new one, or one that was cleared."""
    if server._spare:
        return server._spare.pop()
    name = f"t_{secrets.token_hex(6)}"
    _ask(server, "createdb", name)
    return server.url(name)


def clear_database(server: Server, url: str) -> None:
    """End every session of a database, drop all that is in it, and keep it for the next who needs an empty one."""
    others = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database()"
    statements = (
        f"{others} AND pid <> pg_backend_pid()",
        *("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "GRANT USAGE ON SCHEMA public TO PUBLIC"),
    )
    commands = [part for statement in statements for part in ("-c", statement)]
    _ask(server, "psql", "--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1", *commands, url.rpartition("/")[2])
    server._spare.append(url)


def _ask(server: Server, program: str, *arguments: str) -> None:
    environment = {**os.environ, "PGPASSWORD": server.password}
    command = [server.binaries / program, "-h", server.host, "-p", str(server.port), "-U", server.user, *arguments]
    subprocess.run(command, env=environment, check=True, capture_output=True)


def find_binaries() -> Path:
    for folder in _candidates():
        if all((folder / name).exists() for name in ("postgres", "initdb", "pg_ctl", "createdb", "psql")):
            return folder
    raise PostgresMissingError("PostgreSQL's server is not installed: no postgres, initdb and pg_ctl found")


def _candidates() -> Iterator[Path]:
    if config := shutil.which("pg_config"):
        yield Path(subprocess.run([config, "--bindir"], check=True, capture_output=True, text=True).stdout.strip())
    if postgres := shutil.which("postgres"):
        yield Path(postgres).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _account() -> str:
    """Name an account to run the server: it refuses to run as root."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in names:
            return name
    raise PostgresMissingError("PostgreSQL does not run as root, and there is no account postgres or nobody")


def _initialise(server: Server) -> None:
    secret = server.folder / "password"
    secret.write_text(server.password)
    secret.chmod(0o644)
    _run(
        *(server.binaries / "initdb", "-D", server.folder / "data", "-U", server.user, "--no-sync"),
        *("--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--locale=C"),
    )


def _options(server: Server) -> str:
    settings = {"fsync": "off", "full_page_writes": "off", "max_connections": "60", "shared_buffers": "16MB"}
    flags = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return f"-h {server.host} -p {server.port} -k {server.folder} {flags}"


def _run(*command: str | Path) -> None:
    as_other = {}
    if os.getuid() == 0:
        account = pwd.getpwnam(_account())
        as_other = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    # Not captured by pipes: a server that was started would hold them open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(command, stdout=output, stderr=output, check=False, cwd="/", **as_other)
        if done.returncode:
            output.seek(0)
            raise RuntimeError(f"{command[0]} failed: {output.read().decode(errors='replace')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
