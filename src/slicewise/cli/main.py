"""The entry point: the commands, and errors as one line with an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

import slicewise
from slicewise.errors import SlicewiseError

COMMANDS = {
    "plan": "Choose slice, dtypes and batch for a model and a workload: the main job.",
    "step": "One decode step: memory, terms, what binds, throughput and cost.",
    "prefill": "Prefill of one prompt: its time and what binds.",
    "memory": "What a model needs and where it fits.",
    "disaggregate": "Prefill and decode on servers of their own.",
    "simulate": "Behaviour under load: a trace of requests through planned servers.",
    "size": "The cheapest fleet that meets latency limits under a load.",
    "report": "The answer of plan as one HTML file, with its figures and derivations.",
    "frontier": "Latency against throughput over the batch; --out draws it.",
    "limits": "Critical batch, model parallelism, KV layout, the knee.",
    "compare": "Chips or slices side by side.",
    "cost": "What a measured rate costs, and when owning beats paying for each token.",
    "calibrate": "Your own measurements become the times that are expected.",
    "verify": "Compile the plan with the TPU's compiler, without a TPU.",
    "book": "Chapter 8: printed answers, ours, and why they differ.",
    "catalog": "What is known, with sources.",
    "web": "The explorer: a page on this machine where a plan can be seen, moved and understood.",
}
BAD_INPUT, STOPPED = 2, 130


class Commands(click.Group):
    """The commands by name; only the one that runs is loaded."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, the main job first."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"slicewise.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(slicewise.__version__, message="slicewise %(version)s")
def app() -> None:
    """Plan how to serve a large language model on TPU slices or GPUs: bounds, expectations, and why.

    Start with: slicewise plan llama-3-70b
    """


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line.

    Exit codes: 0 an answer; 1 it does not fit; 2 bad input, with one line that names the fix; 130 stopped by Ctrl-C.
    """
    argv = list(sys.argv[1:] if words is None else words)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without the signs of products and microseconds shows a question mark, not a traceback.
        sys.stdout.reconfigure(errors="replace")
    try:
        code = app.main(argv, prog_name="slicewise", standalone_mode=False)
        sys.stdout.flush()
    except SlicewiseError as error:
        code = _complain(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = BAD_INPUT
    except click.ClickException as error:
        command = f"slicewise {argv[0]}" if argv[:1] and argv[0] in COMMANDS else "slicewise"
        took = isinstance(error, click.MissingParameter) and "--explain" in argv
        why = "; --explain takes the word after it as its NAME: put MODEL first" if took else ""
        code = _complain(f"{error.format_message().rstrip('.')}{why} (see {command} --help)")
    except click.Abort:
        _complain("stopped")
        code = STOPPED
    except BrokenPipeError:
        # The reader went away (head, less): nothing is wrong. Python would complain at exit on flushing.
        _drop_output()
        code = 0
    except OSError as error:
        _drop_output()
        code = _complain(f"the output cannot be written ({error.strerror}); give it room, or another place")
    sys.exit(code or 0)


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> int:
    sys.stderr.write(f"slicewise: {' '.join(message.split())}\n")
    return BAD_INPUT
