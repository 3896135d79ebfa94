open("config.yaml", "w").write("# fill\n" * (1024 * 1024 // 7 + 1))
