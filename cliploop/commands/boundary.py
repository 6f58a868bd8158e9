"""The boundary of every command: errors become one line, a reason and an exit code; never a traceback."""

from __future__ import annotations

import logging
from collections.abc import Callable

from cliploop.interrupts import heard, refuse_if_heard
from cliploop.terminal import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, EXIT_WAITING, Terminal
from orchestrator.errors import BackendMisconfigured, CliploopError, JobNotFound, JobWaiting, TaskRejected

_log = logging.getLogger("cliploop")


def guarded(terminal: Terminal, body: Callable[[], int]) -> int:
    """Run a command's body. Bad usage and input 2, waiting 4, interrupted 130, anything else 1."""
    _quiet_logging()
    try:
        refuse_if_heard()
        return body()
    except TaskRejected as error:
        return terminal.error(str(error), reason=error.reason, code=EXIT_USAGE)
    except BackendMisconfigured as error:
        return terminal.error(str(error), reason="configuration", code=EXIT_USAGE)
    except JobNotFound as error:
        return terminal.error(str(error), reason="job_not_found", code=EXIT_USAGE)
    except JobWaiting as error:
        return terminal.error(str(error), reason=error.reason, code=EXIT_WAITING)
    except CliploopError as error:
        return terminal.error(str(error), reason="failed", code=EXIT_FAILED)
    except KeyboardInterrupt:
        return _interrupted(terminal)
    except Exception as error:
        if heard():  # what a library made of the interrupt
            return _interrupted(terminal)
        _log.debug("internal error", exc_info=True)
        where = _place(error)
        message = (
            f"internal error at {where}: {type(error).__name__}: {error}; please report it, with the command"
        )
        return terminal.error(message, reason="internal", code=EXIT_FAILED)


def _interrupted(terminal: Terminal) -> int:
    return terminal.error("interrupted; run the same command again", reason="interrupted", code=EXIT_INTERRUPTED)


def _quiet_logging() -> None:
    """Logs and warnings of libraries are no part of a command's words, unless somebody set up logging."""
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
    logging.captureWarnings(True)


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place"
    return f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
