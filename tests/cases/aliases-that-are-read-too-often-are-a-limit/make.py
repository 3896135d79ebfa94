uses = "".join(f"            - V{i}: *a\n" for i in range(40))
open("config.yaml", "w").write(
    "a: &a " + "x" * 60000 + "\ncluster:\n  num_nodes: 1\n  component_placement: {actor: 0}\n  node_groups:\n"
    "    - label: g\n      node_ranks: 0\n      env_configs:\n        - node_ranks: 0\n          env_vars:\n" + uses
)
