groups = ",".join(["{}"] * 4097)
open("config.yaml", "w").write(f"cluster:\n  num_nodes: 1\n  component_placement: {{actor: 0-7}}\n  node_groups: [{groups}]\n")
