"""Programs in Python: rules about their syntax tree. What can't be read is told, not passed over."""

import ast
import warnings
from collections.abc import Iterator

from agentos_pack_code_safety.dangers import Danger, Severity
from agentos_pack_code_safety.shell import dangers_of_shell

_LONGEST = 200_000
_CALLS: dict[str, tuple[str, Severity, str]] = {
    **dict.fromkeys(
        ("os.system", "os.popen", "os.execv", "os.execve", "os.execvp", "os.execl", "os.spawnv", "os.spawnl", "os.posix_spawn",
         "pty.spawn", "commands.getoutput", "subprocess.getoutput", "subprocess.getstatusoutput"),
        ("run-program", "block", "runs a program"),
    ),
    **dict.fromkeys(
        ("subprocess.run", "subprocess.call", "subprocess.Popen", "subprocess.check_call", "subprocess.check_output",
         "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell", "multiprocessing.Process"),
        ("run-program", "flag", "runs a program"),
    ),
    **dict.fromkeys(("eval", "exec", "compile", "builtins.eval", "builtins.exec"), ("run-text", "block", "runs a text that only shows when it runs")),
    **dict.fromkeys(
        ("pickle.load", "pickle.loads", "marshal.loads", "shelve.open", "dill.loads", "jsonpickle.decode", "yaml.unsafe_load", "yaml.load", "torch.load", "joblib.load"),
        ("load-objects", "block", "makes objects of data, which can run anything"),
    ),
    **dict.fromkeys(("shutil.rmtree", "os.removedirs"), ("delete-recursively", "block", "deletes folders with all that is in them")),
    **dict.fromkeys(("os.remove", "os.unlink", "os.rmdir", "os.truncate", "os.rename", "os.replace", "shutil.move"), ("change-files", "flag", "deletes or moves files")),
    **dict.fromkeys(("os.chmod", "os.chown", "os.setuid", "os.setgid", "os.kill", "os.killpg", "os.fork", "os._exit", "os.abort"), ("change-process", "flag", "changes processes or rights")),
    **dict.fromkeys(("__import__", "importlib.import_module", "importlib.reload", "runpy.run_path", "runpy.run_module"), ("import-by-name", "flag", "imports what only shows when it runs")),
    **dict.fromkeys(
        ("socket.socket", "socket.create_connection", "urllib.request.urlopen", "urllib.request.urlretrieve", "requests.get", "requests.post", "requests.put",
         "requests.request", "httpx.get", "httpx.post", "http.client.HTTPConnection", "http.client.HTTPSConnection", "ftplib.FTP", "smtplib.SMTP"),
        ("use-network", "flag", "uses the network"),
    ),
    **dict.fromkeys(("ctypes.CDLL", "ctypes.cdll.LoadLibrary", "ctypes.windll", "cffi.FFI", "mmap.mmap"), ("native-code", "block", "calls native code")),
    **dict.fromkeys(("sys.settrace", "gc.get_objects", "gc.get_referrers", "sys._getframe", "inspect.currentframe"), ("look-around", "flag", "looks into the program that runs it")),
}  # fmt: skip
_ESCAPES = frozenset({
    "__subclasses__", "__globals__", "__builtins__", "__bases__", "__mro__", "__code__", "__closure__", "__getattribute__",
    "__loader__", "__import__", "__reduce__", "__reduce_ex__", "__dict__", "gi_frame", "cr_frame", "f_globals", "f_builtins", "f_back", "tb_frame",
})  # fmt: skip
_SYSTEM = ("/etc/", "/boot/", "/bin/", "/sbin/", "/usr/", "/lib", "/dev/", "/proc/", "/sys/", "/root/")
_WRITING = frozenset("wax+")


def dangers_of_python(text: str) -> list[Danger]:
    """Return what is dangerous in a program."""
    if len(text) > _LONGEST:
        return [_danger("unreadable", "flag", "is too long to be looked at")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in its texts
            tree = ast.parse(text)
        names = _imported(tree)
        return sorted({danger for node in ast.walk(tree) for danger in _of_node(node, names)})
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [_danger("unreadable", "flag", "can't be read as Python")]


def _danger(rule: str, severity: Severity, reason: str) -> Danger:
    return Danger(f"python.{rule}", severity, reason)


def _imported(tree: ast.AST) -> dict[str, str]:
    """Return what names of the program stand for: modules, and what is imported from them."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(aliases):
                names |= {
                    (one.asname or one.name.partition(".")[0]): one.name if one.asname else one.name.partition(".")[0]
                    for one in aliases
                }
            case ast.ImportFrom(module=str(module), names=aliases):
                names |= {(one.asname or one.name): f"{module}.{one.name}" for one in aliases}
            case ast.Assign([ast.Name(target)], (ast.Name() | ast.Attribute()) as value):
                names[target] = _dotted(value, names)
    return names


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    match node:
        case ast.Name(name):
            return names.get(name, name)
        case ast.Attribute(value, attribute):
            return f"{_dotted(value, names)}.{attribute}"
        case ast.Call(ast.Name("__import__"), [ast.Constant(str(name)), *_]):
            return name
        case ast.Call(ast.Name("getattr"), [value, ast.Constant(str(name)), *_]):
            return f"{_dotted(value, names)}.{name}"
    return ""


def _of_node(node: ast.AST, names: dict[str, str]) -> Iterator[Danger]:
    match node:
        case ast.Call():
            yield from _of_call(node, _dotted(node.func, names))
        case ast.Attribute(attr=name) if name in _ESCAPES:
            yield _danger("escape", "block", f"reaches for {name}, the way out of what a program may do")
        case ast.Constant(str(text)) if text in _ESCAPES:
            yield _danger("escape", "block", f"reaches for {text}, the way out of what a program may do")
        case ast.Name(name) if name == "__builtins__":
            yield _danger("escape", "block", "reaches for __builtins__, the way out of what a program may do")


def _of_call(node: ast.Call, name: str) -> Iterator[Danger]:
    if name in _CALLS and not (name == "yaml.load" and any("Safe" in ast.unparse(one.value) for one in node.keywords)):
        yield _danger(*_CALLS[name])
        first = node.args[0] if node.args else None
        if _CALLS[name][0] == "run-program":
            if any(
                one.arg == "shell" and isinstance(one.value, ast.Constant) and one.value.value for one in node.keywords
            ):
                yield _danger("run-shell", "block", "gives a text to a shell")
            yield from dangers_of_shell(_constant(first))
    if name in ("getattr", "setattr") and len(node.args) > 1 and not isinstance(node.args[1], ast.Constant):
        yield _danger("attribute-by-name", "flag", "reaches for what only shows when it runs")
    if name in ("open", "io.open", "pathlib.Path.open") and _writes(node):
        path = _constant(node.args[0]) if node.args else None
        is_system = isinstance(path, str) and path.startswith(_SYSTEM)
        yield _danger(
            "write-system-file" if is_system else "change-files", "block" if is_system else "flag", "writes a file"
        )


def _constant(node: ast.AST | None) -> object:
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _writes(node: ast.Call) -> bool:
    modes = [*node.args[1:2], *(one.value for one in node.keywords if one.arg == "mode")]
    return any(not isinstance(mode := _constant(one), str) or bool(_WRITING & set(mode)) for one in modes)
