handle = Cluster.allocate(
    cls,            # 要启动的 actor 类
    worker_name,    # 该 actor 的唯一可读名称
    node_id,        # 节点在 Cluster 列表中的索引（0 表示主节点）
    gpu_id,         # 节点内的本地 GPU 编号（用于隔离）
    env_vars,       # 该 actor 的环境变量（如 CUDA_VISIBLE_DEVICES）
    cls_args=[],    # 传给构造函数的位置参数
    cls_kwargs={},  # 传给构造函数的关键字参数
)
