"""How bash is answered: it takes the line apart at colons and equals signs, where names of ours go on.

So the script hands over the line as it was typed, and what stands before such a sign is left out of the answer.
"""

import os

from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

_SCRIPT = """\
%(complete_func)s() {
    local IFS=$'\\n' completion type value

    for completion in $(env COMP_WORDS="${COMP_LINE:0:COMP_POINT}" COMP_POINT="$COMP_POINT" \
COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete $1); do
        IFS=',' read -r type value <<< "$completion"
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class LineCompletion(BashComplete):
    """Completes the line that was typed."""

    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is completed, and that one."""
        if "COMP_POINT" not in os.environ:  # a script of an earlier version
            return super().get_completion_args()
        line = os.environ["COMP_WORDS"]
        words = [*split_arg_string(line), *([""] if line[-1:].isspace() else [])]
        return words[1:-1], words[-1]

    def format_completion(self, item: "CompletionItem[str]") -> str:
        """Return what bash puts behind the last of the signs at which it takes words apart."""
        _, word = self.get_completion_args()
        breaks = [word.rfind(sign) for sign in ":=" if sign in os.environ.get("COMP_WORDBREAKS", "")]
        return f"{item.type},{str(item.value)[max([-1, *breaks]) + 1 :]}"


def register() -> None:
    """Let click answer bash in this way."""
    add_completion_class(LineCompletion, "bash")
