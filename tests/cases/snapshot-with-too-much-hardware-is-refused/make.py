open("cluster.json", "w").write('{"cluster": {"nodes": [{"hardware": [\n' + ",\n".join(['{"type": "Franka"}'] * 4097) + "]}]}}")
