"""The command line: `python starter.py COMMAND`. Each command is a few lines in `commands/`; `--help` lists them.

Exit codes: 0 done; 1 ended otherwise than succeeded; 2 usage or bad input; 3 refused; 4 can't reach Temporal or the ledger;
5 verification found tampering; 6 succeeded in part; 7 needs a human; 8 stopped waiting, the operation goes on.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

try:
    import typer
    from typer.exceptions import TyperException
except ModuleNotFoundError:  # another Python than .venv's; commands are shown as `python starter.py`, and have to run as shown
    own = Path(__file__).absolute().with_name(".venv")
    if Path(sys.prefix) != own and (own / "bin" / "python").exists():
        os.execv(own / "bin" / "python", [str(own / "bin" / "python"), *sys.argv])  # noqa: S606 - this file, by the Python made for it
    sys.stderr.write("error: this Python lacks the libraries\nhint: any target of make, such as `make demo`, makes .venv\n")
    sys.exit(2)

from commands import checking, deciding, drafting, escalating, looking, probing, stack, starting
from commands.output import ExitCode, Usage, fail, note, write_text
from commands.providers import contracts
from domain.errors import SakshiError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in plain text: boxes take longer to load than all else that help needs, and are in a program's way
    help="Sakshi runs slow, costly HTTP jobs durably and can prove afterwards what happened.",
    epilog="Exit codes: 0 done; 1 ended otherwise than succeeded; 2 usage or bad input; 3 refused; 4 can't reach Temporal or the ledger; "
    "5 verification found tampering; 6 succeeded in part; 7 needs a human; 8 stopped waiting, the operation goes on.",
)
app.command()(stack.demo)
app.command()(stack.dev)
contracts.command()(drafting.new)
contracts.command()(probing.probe)
app.add_typer(contracts, name="contracts")
app.command()(starting.run)
app.command()(looking.wait)
app.command()(looking.status)
app.command()(looking.watch)
app.command("list")(looking.list_operations)
app.command()(deciding.cancel)
app.command()(deciding.resolve)
app.command()(looking.result)
app.command()(looking.evidence)
app.command()(checking.verify)
app.command()(escalating.escalate)
app.command()(checking.doctor)
app.add_typer(checking.ledger, name="ledger")


INTERRUPTED = 130
"""What the library makes of Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and say with which code to exit."""
    typed = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    as_json = "--json" in typed
    try:
        code: object = app(args=typed, prog_name="python starter.py", standalone_mode=False)
    except SakshiError as error:
        return fail(error, as_json=as_json)
    except TyperException as error:
        said, hint = _said(error)
        if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command; the library has no public name for it
            write_text(said)
            return ExitCode.BAD_INPUT
        return fail(Usage(said, hint=hint), as_json=as_json)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    if code == INTERRUPTED:
        note("stopped" if typed[0] in {"dev", "demo"} else "stopped waiting; what was started goes on")
        return ExitCode.STOPPED_WAITING
    return code if isinstance(code, int) else ExitCode.DONE


def _said(error: TyperException) -> tuple[str, str]:
    """What is wrong with what was typed, and where help is."""
    said = getattr(error, "format_message", lambda: str(error))()
    where = getattr(getattr(error, "ctx", None), "command_path", "python starter.py")
    return str(said), f"{where} --help"


if __name__ == "__main__":
    sys.exit(main())
