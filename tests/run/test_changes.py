"""What may change in a config when its run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

from nn_manual.data import Dataset
from nn_manual.registry import components
from nn_manual.run.changes import PLACES_OF_DATA, changes


def test_every_path_of_a_data_set_says_where_it_lies() -> None:
    paths = {
        name
        for dataset in components(Dataset).values()
        for name, hint in get_type_hints(dataset).items()
        if Path in (hint, *get_args(hint))
    }
    assert paths == {*PLACES_OF_DATA}


def test_where_things_lie_may_change_and_what_they_are_may_not() -> None:
    was = {"layer_folder": "/a", "data": {"Text": {"file": "/a/b", "context": 4}}, "file": "/a"}
    now = {"layer_folder": "/b", "data": {"Text": {"file": "/b/b", "context": 8}}, "file": "/b"}
    assert changes(was, now) == ["data.Text.context was 4, is 8", "file was /a, is /b"]
