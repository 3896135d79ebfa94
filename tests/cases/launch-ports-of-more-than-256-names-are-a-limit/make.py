from pathlib import Path
Path("config.yaml").write_text("cluster: {num_nodes: 1, component_placement: {a: 0}}\nroost: {launch: {a: {ports: {" + ", ".join(f"p{i}: 1" for i in range(257)) + "}}}}\n")
