"""How people are shown the calls of these tools."""

from agentos import Display

DISPLAYS = {
    "run_command": Display("text", title="Run {args.argv.0}", fields=("stdout", "stderr")),
    "which": Display("table", title="Programs", fields=("programs[].program", "programs[].path", "programs[].allowed")),
}
