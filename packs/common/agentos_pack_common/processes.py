"""Programs, run by argv and within limits, as agentos itself runs them."""

from agentos.processes.program_start import SAFE_PATH, ProcessError, find_program
from agentos.processes.programs import ProcessResult, ProgramLimits, run_process, run_python

__all__ = ["SAFE_PATH", "Limits", "ProcessError", "ProcessResult", "find_program", "run_process", "run_python"]

Limits = ProgramLimits
