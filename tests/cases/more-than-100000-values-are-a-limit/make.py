open("config.yaml", "w").write("a:\n" + "- 0\n" * 100_000)
