"""The file with a config's JSON Schema, and the line by which a config beside it names it for editors."""

from __future__ import annotations

from pathlib import Path

from nn_manual.config.json_schema import schema_text
from nn_manual.errors import ConfigError
from nn_manual.messages.text import one_line
from nn_manual.run_directory.files import write_atomically

#: The schema's name beside a config.
SCHEMA_FILE = "nn_manual.schema.json"
#: The first line of a config with the schema beside it: yaml-language-server, which most editors run, looks for it.
FIRST_LINE = f"# yaml-language-server: $schema={SCHEMA_FILE}"


def check_replaceable(path: Path) -> None:
    """Raise ConfigError where a file of that name is no schema of a config's, of this version or another one."""
    beginning = "".join(schema_text().splitlines(keepends=True)[:3]).encode()
    if path.exists() and not (path.is_file() and path.read_bytes().startswith(beginning)):
        words = "stands where the schema belongs, and isn't one: choose another folder, or rename it"
        raise ConfigError(f"{one_line(str(path))} {words}")


def write_schema(path: Path) -> None:
    """Write the schema to a file, which replaces one of that name. Raises DataError as `write_atomically` does."""
    write_atomically(path, schema_text().encode())
