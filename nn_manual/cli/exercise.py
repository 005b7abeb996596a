"""exercise: derive a gradient by hand, and see what is right. Every heavy import waits until a command needs it."""

from __future__ import annotations

import argparse
from pathlib import Path

from nn_manual.cli.arguments import path
from nn_manual.cli.terminal import going_on_without_a_reader
from nn_manual.errors import ConfigError, GradientMismatch
from nn_manual.messages.text import one_line, shell_word, wrapped

STATUSES = """\
exit status of check:
  0    right
  2    usage, or a file that is of no exercise
  3    wrong, or not written yet
"""


def add_exercise_commands(parser: argparse.ArgumentParser) -> None:
    """Give the parser of the command its commands; without one, it lists the exercises."""
    parser.set_defaults(command=listing)
    names = parser.add_subparsers(title="commands", metavar="COMMAND")
    begin = names.add_parser("start", help="write the file of an exercise: its derivative is yours to write")
    begin.add_argument("name", metavar="NAME", help="an exercise, as `nn-manual exercise` lists them")
    begin.add_argument("-o", "--output", type=path, metavar="FILE", help="the file (default: NAME.py)")
    begin.set_defaults(command=start)
    check = names.add_parser(
        "check",
        help="which gradients of a file are right, and the first wrong one",
        epilog=STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add_argument("file", type=path, metavar="FILE", help="the file with your solution")
    check.add_argument("--watch", action="store_true", help="check at every save, until Ctrl-C")
    check.add_argument(
        "--picture",
        type=path,
        metavar="FILE",
        help="draw the Jacobian of the first wrong gradient beside the true one",
    )
    check.set_defaults(command=check_file)
    hint = names.add_parser("hint", help="one line more of the derivation")
    hint.add_argument("exercise", metavar="NAME|FILE", help="an exercise, or the file with your solution")
    hint.set_defaults(command=show_hint)
    solution = names.add_parser("solution", help="our solution, below yours")
    solution.add_argument("exercise", metavar="NAME|FILE", help="an exercise, or the file with your solution")
    solution.set_defaults(command=show_solution)
    make = names.add_parser("make", help="an exercise of a class of your own, for others to solve")
    make.add_argument("component", metavar="FILE.py:CLASS", help="the class, as in my_layers.py:Swish")
    make.add_argument(
        "-o",
        "--output",
        type=path,
        required=True,
        metavar="FILE",
        help="the file to hand out; what is right lies beside it, as FILE with the ending .exercise",
    )
    make.set_defaults(command=make_exercise)
    grade = names.add_parser("grade", help="check all files of a folder, each in a process of its own")
    grade.add_argument("folder", type=path, metavar="FOLDER", help="the hand-ins: .py files, also in folders of it")
    grade.add_argument(
        "-o", "--output", type=path, metavar="FILE", help="the grades, as a CSV (default: standard output)"
    )
    grade.set_defaults(command=grade_folder)
    names.add_parser("list").set_defaults(command=no_list)  # not in the help


def _say(text: str) -> None:
    """Print a message, in lines for a terminal."""
    print("\n".join(wrapped(one_line(text))))


def listing(_: argparse.Namespace) -> int:
    """Print the exercises, with what is done in this folder. Returns the exit status."""
    from nn_manual.exercises.commands.progress import listing

    print("\n".join(listing(Path.cwd())))
    return 0


def no_list(_: argparse.Namespace) -> int:
    """Say how the list is got: as a command, `list` would be a second way. Raises ConfigError."""
    raise ConfigError("without a command, nn-manual exercise lists the exercises")


def start(options: argparse.Namespace) -> int:
    """Write the file of an exercise. Returns the exit status."""
    from nn_manual.exercises.commands.starting import start

    path = start(options.name, options.output)
    print(one_line(f"{path} is yours to complete."))
    print(one_line(f"To check it: nn-manual exercise check {shell_word(path)}"))
    return 0


def check_file(options: argparse.Namespace) -> int:
    """Check a file, once or at every save. Returns the exit status."""
    if options.watch and options.picture is not None:
        raise ConfigError("--picture draws once, --watch checks again and again: give one of them")
    if options.picture is not None:
        from nn_manual.plotting.saving import check_ending

        check_ending(options.picture)
    from nn_manual.exercises.running.process import Worker

    worker = Worker()  # it imports the package while this process does, too
    from nn_manual.exercises.commands.checking import check_file, draw, watch

    if options.watch:
        watch(options.file, lambda text: print(text, flush=True), worker)
    checked = check_file(options.file, worker)
    print(checked)
    if options.picture is not None:
        _say(draw(checked, options.picture))
    return 0 if checked.verdict.passed else GradientMismatch.exit_status


def show_hint(options: argparse.Namespace) -> int:
    """Print one line more of the derivation. Returns the exit status."""
    from nn_manual.exercises.commands.starting import hint

    print(hint(options.exercise))
    return 0


def show_solution(options: argparse.Namespace) -> int:
    """Print our solution. Returns the exit status."""
    from nn_manual.exercises.commands.starting import solution

    print(solution(options.exercise))
    return 0


def make_exercise(options: argparse.Namespace) -> int:
    """Write an exercise of a class of the user's own. Returns the exit status."""
    from nn_manual.exercises.commands.made import make

    if options.output.suffix != ".py":
        raise ConfigError(f"--output {options.output}: the exercise is a Python file, .py")
    beside = make(options.component, options.output)
    _say(f"{options.output}, and what is right in {beside}: hand out both")
    return 0


def grade_folder(options: argparse.Namespace) -> int:
    """Check all files of a folder. Returns the exit status."""
    from nn_manual.exercises.commands.grading import grade, write

    if options.output is not None:
        from nn_manual.exercises.running.reference import refuse_existing

        refuse_existing(options.output)
    with going_on_without_a_reader():
        grades = grade(options.folder)
    write(grades, options.output)
    return 0
