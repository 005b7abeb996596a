"""The rooms of the package, and which of the others each may import."""

from __future__ import annotations

#: The rooms that each room of the package may import, beside itself: some of those before it. A room is a file
#: or a folder; the check and the exercises are so large that their files and folders are rooms of their own.
ARRAYS = {"messages", "errors", "opening", "arrays", "defaults", "plain_settings"}
FORMULAS = ARRAYS | {"layers", "losses", "ops"}
TRAINED = FORMULAS | {"model", "optim"}
COMPARING = TRAINED | {"check.compare"}
JUDGING = COMPARING | {"check.twin", "check.step", "check.conduct", "check.judge"}
CHECKING = JUDGING | {"check.whole_step"}
TRAINING = CHECKING | {"data", "step", "trace", "compile", "check.many_steps", "check.sliced_step"}
EXERCISED = JUDGING | {"check.catalogue", "registry", "config", "docstrings", "exercises.kinds", "exercises.files"}
RUNNING = TRAINING | {"streams", "registry", "config", "run_directory", "plotting", "trainer"}
MAY_IMPORT: dict[str, set[str]] = {
    "defaults": set(),
    "messages": {"defaults"},
    "errors": {"messages"},
    "opening": set(),
    "arrays": {"messages", "errors"},
    "plain_settings": {"errors"},
    "streams": set(),
    "machine_code": set(),
    "layers": ARRAYS | {"streams"},
    "losses": ARRAYS,
    "ops": ARRAYS,
    "model": FORMULAS | {"streams"},
    "optim": FORMULAS | {"model"},
    "docstrings": {"layers", "losses", "optim"},
    "data": ARRAYS | {"streams"},
    "registry": TRAINED | {"data"},
    "step": TRAINED,
    "trace": TRAINED | {"step"},
    "check.compare": ARRAYS | {"machine_code"},
    "check.twin": COMPARING,
    "check.step": COMPARING | {"check.twin", "step"},
    "check.conduct": COMPARING | {"check.step", "streams"},
    "check.judge": COMPARING | {"check.twin", "check.step", "check.conduct"},
    "check.whole_step": JUDGING | {"step"},
    "check.many_steps": CHECKING | {"step"},
    "check.sliced_step": CHECKING | {"step"},
    "check.catalogue": CHECKING | {"registry", "data"},
    "functions": CHECKING | {"streams", "check.catalogue"},
    "compile": TRAINED | {"data", "trace", "check.step", "machine_code"},
    "run_directory": ARRAYS,
    "trainer": TRAINING | {"run_directory"},
    "estimators": TRAINED | {"trainer"},
    "config": TRAINED | {"data", "registry", "step", "compile"},
    "plotting": ARRAYS | {"run_directory"},
    "run": RUNNING,
    "use": RUNNING | {"run"},
    "unroll": TRAINED
    | {"trace", "streams", "docstrings", "data", "config", "run_directory", "trainer", "run", "check.whole_step"},
    "exercises.kinds": JUDGING | {"check.catalogue", "registry", "docstrings"},
    "exercises.files": ARRAYS | {"layers", "losses", "ops", "optim", "docstrings", "exercises.kinds"},
    "exercises.running": EXERCISED | {"plotting"},
    "exercises.causes": EXERCISED | {"exercises.running"},
    "exercises.verdicts": EXERCISED | {"exercises.running", "exercises.causes", "plotting"},
    "exercises.commands": EXERCISED | {"exercises.running", "exercises.verdicts", "run_directory", "plotting"},
    "cli": {"messages", "errors", "config", "step", "run", "use", "plotting", "unroll"}
    | {"check.catalogue", "functions", "exercises.running", "exercises.commands"},
    "__main__": {"cli"},
}
