"""The local engine: worker groups as processes of this machine, over the C library."""
