"""Optuna reads the file of a search as a storage of its own, and goes on with it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

program, python = sys.argv[1:3]
READ = """
import json, sys, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.load_study(study_name='mlp', storage='sqlite:///' + sys.argv[1])
trials = [dict(number=t.number, state=t.state.name, params=t.params, value=t.value,
               steps=t.intermediate_values) for t in study.trials]
best = study.best_trial.number
study.optimize(lambda trial: trial.suggest_float('learning-rate', 1e-4, 1e-1, log=True), n_trials=1)
study.enqueue_trial({'learning-rate': 0.02, 'batch': '64'})
study.enqueue_trial({'learning-rate': 0.5})
print(json.dumps(dict(direction=study.direction.name, trials=trials, best=best, after=len(study.trials))))
"""


def main():
    if not pathlib.Path(python).exists() or subprocess.run([python, "-c", "import optuna"],
                                                           capture_output=True).returncode != 0:
        print("Optuna is not there (tools/setup-oracles)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        def search(trials):
            subprocess.run([program, *"search mlp --samples 1000 --epochs 9 --set learning-rate=1e-4..1e-1:log --set "
                            f"batch=64,128 --trials {trials} --threads 1 --quiet --out s".split()], cwd=folder,
                           check=True, env={**os.environ, "SUPERSTEP_HOME": folder + "/home"})
            return json.loads(pathlib.Path(folder, "s/results.json").read_text())

        ours = search(6)
        said = subprocess.run([python, "-c", READ, folder + "/s/search.db"], capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        more = search(8)
    theirs = json.loads(said.stdout)
    assert theirs["direction"] == ("MAXIMIZE" if ours["higher_is_better"] else "MINIMIZE"), theirs
    queued = {t["trial"]: t for t in more["trials"]}
    assert queued[7]["values"] == {"learning-rate": "0.02", "batch": "64"} and queued[7]["qualities"], queued[7]
    assert queued[8]["state"] == "failed" and "learning-rate 0.5" in queued[8]["words"], queued[8]
    assert theirs["after"] == 9 and len(theirs["trials"]) == 6
    states = {"done": "COMPLETE", "paused": "PRUNED"}
    for mine, other in zip(ours["trials"], theirs["trials"]):
        assert other["number"] == mine["trial"] and other["state"] == states[mine["state"]], (mine, other)
        assert abs(other["params"]["learning-rate"] - float(mine["values"]["learning-rate"])) < 1e-12
        assert other["params"]["batch"] == mine["values"]["batch"]
        assert other["steps"] == {str(q["epochs"]): q["quality"] for q in mine["qualities"]}, (mine, other)
    complete = [t for t in theirs["trials"] if t["state"] == "COMPLETE"]
    assert theirs["best"] in [t["number"] for t in complete]
    print("ok")
    return 0


sys.exit(main())
