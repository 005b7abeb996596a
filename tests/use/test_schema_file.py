"""The schema in a file: the one of config/ is up to date, and each config there names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nn_manual import cli
from nn_manual.config.json_schema import schema_text
from nn_manual.use.schema_file import FIRST_LINE, SCHEMA_FILE, write_schema

CONFIG = Path(__file__).parents[2] / "config"


def test_the_file_in_config_is_what_the_command_writes(tmp_path: Path) -> None:
    """Where it isn't: `nn-manual schema -o config/nn_manual.schema.json`. The values are compared, since an older
    pydantic writes 0.0 where a newer one writes 0.
    """
    write_schema(tmp_path / "schema.json")
    assert (tmp_path / "schema.json").read_text(encoding="utf-8") == schema_text()
    assert json.loads((CONFIG / SCHEMA_FILE).read_text(encoding="utf-8")) == json.loads(schema_text())


@pytest.mark.parametrize("path", sorted(CONFIG.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_config_names_the_schema_beside_it(path: Path) -> None:
    assert path.read_text(encoding="utf-8").splitlines()[0] == FIRST_LINE
    name = FIRST_LINE.removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / name).is_file()


def test_a_config_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.yaml").write_text("seed: 1\n")
    assert cli.main(["schema", "-o", str(tmp_path / "run.yaml")]) == 2
    assert "run.yaml: this is the name of a config, and a schema is JSON" in capsys.readouterr().err
    assert (tmp_path / "run.yaml").read_text() == "seed: 1\n"
    for _ in range(2):  # one schema takes the place of another
        assert cli.main(["schema", "-o", str(tmp_path / "schema.json")]) == 0
