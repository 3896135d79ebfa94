from pathlib import Path

Path("a\x1b[31mred\u202e.yaml").write_text("cluster: {num_nodes: 1, component_placement: {actor: 0, actor: 1, b: 0-}}\n")
