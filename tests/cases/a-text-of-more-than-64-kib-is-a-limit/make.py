open("config.yaml", "w").write("a: " + "x" * 65537 + "\n")
