"""Training traces for `difftest check`: write them, read them, have them judged."""

from .program import Report, check
from .trace import ReadTrace, Step, Trace, TraceError, read

__all__ = ["ReadTrace", "Report", "Step", "Trace", "TraceError", "check", "read"]
__version__ = "0.1.0"
