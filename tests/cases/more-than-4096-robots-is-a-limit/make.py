robots = ",".join(["0"] * 4097)
open("config.yaml", "w").write(f"""cluster:
  num_nodes: 1
  component_placement: {{env: all}}
  node_groups:
    - label: g
      node_ranks: 0
      hardware: {{type: Franka, configs: [{robots}]}}
""")
