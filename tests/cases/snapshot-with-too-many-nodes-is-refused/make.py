open("cluster.json", "w").write('{"cluster": {"nodes": [\n' + ",\n".join(["{}"] * (1024 * 1024 + 1)) + "]}}")
