open("config.yaml", "w").write(
    "a: " + "0" * 40000 + "\ncluster:\n  num_nodes: 1\n  component_placement:\n    actor: ${a}${a}\n"
)
