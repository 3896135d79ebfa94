bad = ", ".join("x" * 600)
open("config.yaml", "w").write(f"cluster: {{num_nodes: 1, component_placement: {{}}, node_groups: [{bad}]}}\n")
