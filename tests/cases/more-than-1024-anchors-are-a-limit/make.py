open("config.yaml", "w").write("a: [" + ", ".join("&a 0" for _ in range(1025)) + "]\n")
