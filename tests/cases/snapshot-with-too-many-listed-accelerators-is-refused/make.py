open("cluster.json", "w").write('{"cluster": {"nodes": [{"accelerators": [' + ", ".join(["{}"] * 1025) + "]}]}}")
