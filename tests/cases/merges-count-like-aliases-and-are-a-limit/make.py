keys = ", ".join(f"k{i}: 0" for i in range(1000))
many = ", ".join(["*a"] * 101)
open("config.yaml", "w").write(f"a: &a {{{keys}}}\nb:\n  <<: [{many}]\n")
