models = "".join(f"      - {{name: m{i}, server_groups: []}}\n" for i in range(1025))
open("config.yaml", "w").write("roost:\n  groups:\n    rollout_num_gpus: 0\n    sglang:\n" + models)
