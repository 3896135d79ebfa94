chain = "".join(f"a{i}: ${{a{i + 1}}}\n" for i in range(70))
open("config.yaml", "w").write(chain + "a70: 0\ncluster:\n  num_nodes: 1\n  component_placement:\n    actor: ${a0}\n")
