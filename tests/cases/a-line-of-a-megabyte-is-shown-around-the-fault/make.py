entries = ["演" if i == 3000 else f"{i}:{i}" for i in range(5000)]
open("config.yaml", "w").write('cluster: {num_nodes: 700, component_placement: {actor: "' + ",".join(entries) + '"}}' + " # " + "x" * 900000 + "\n")
