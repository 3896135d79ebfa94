variables = ",".join(["a"] * 1025)
open("config.yaml", "w").write(f"""cluster:
  num_nodes: 1
  component_placement: {{actor: all}}
  node_groups:
    - label: g
      node_ranks: 0
      env_configs:
        - node_ranks: 0
          env_vars: [{variables}]
""")
