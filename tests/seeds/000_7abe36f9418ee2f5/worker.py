import hydra
from rlinf.scheduler import Cluster, ComponentPlacement, Worker

class TestWorker(Worker):
    def __init__(self):
        super().__init__()

    def run(self):
        self.log_info(f"Hello from TestWorker rank {self._rank}!")

# 示例：YAML 配置文件名为 "conf.yaml"
@hydra.main(version_base=None, config_path=".", config_name="conf")
# cfg 即解析后的 YAML 配置
def main(cfg):
    # 使用配置初始化集群对象
    cluster = Cluster(cluster_cfg=cfg.cluster)

    # 创建 ComponentPlacement，解析放置规则
    placement = ComponentPlacement(cfg, cluster)

    # 获取组件 "test_worker" 对应的放置策略
    strategy = placement.get_strategy("test_worker")

    # 按照放置策略启动 TestWorker
    worker = TestWorker.create_group().launch(
        cluster, placement_strategy=strategy
    )
    worker.run().wait()

main()
