"""Workers on any engine: Cluster, Worker, WorkerGroup, the managers, and what an engine must implement."""
