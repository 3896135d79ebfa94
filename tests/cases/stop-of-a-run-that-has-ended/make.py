from pathlib import Path

for name in ("abc234", "abc235"):
    folder = Path("state/roost/runs") / name
    folder.mkdir(parents=True, mode=0o700)
    (folder / "run.json").write_text('{"run": "%s", "config": "train.yaml", "started": 1, "components": [{"name": "actor", "world_size": 2}]}' % name)
    (folder / "records.jsonl").write_text('{"end":true,"failed":false,"ended":2.0}\n')
for folder in (Path("state"), Path("state/roost"), Path("state/roost/runs")):
    folder.chmod(0o700)
