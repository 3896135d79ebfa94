keys = [",".join(f"c{i}" for i in range(first, first + 17)) for first in range(0, 4097, 17)]
open("config.yaml", "w").write(
    "cluster:\n  num_nodes: 1\n  component_placement:\n" + "".join(f"    {key}: 0-7\n" for key in keys)
)
