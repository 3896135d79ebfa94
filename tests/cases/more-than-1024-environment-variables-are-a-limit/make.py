uses = "".join(f"    c{i}: ${{oc.env:V{i},0}}\n" for i in range(1025))
open("config.yaml", "w").write("cluster:\n  num_nodes: 1\n  component_placement:\n" + uses)
