nodes = [f'  {{"node_rank": {i}, "address": "节点-{i}", "accelerator_type": "NV_GPU", "num_accelerators": 8}}' for i in range(20000)]
nodes[12] = nodes[12].replace("8}", '"8"}')
nodes[15000] = nodes[15000].replace("NV_GPU", "NV_CPU")
nodes[15001] = nodes[15001].replace("num_accelerators", "num_gpus")
nodes[19999] = nodes[19999].replace(" 8}", " 0}")
open("cluster.json", "w").write('{"cluster": {"nodes": [' + ", ".join(nodes) + "\n]}}\n")
