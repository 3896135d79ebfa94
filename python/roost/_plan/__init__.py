"""Planning: nodes, configs, strategies and components, over the C planner. Starts nothing."""
