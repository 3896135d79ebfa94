open("config.yaml", "w").write("cluster: [" + "0, " * 400 + "0]\n")
