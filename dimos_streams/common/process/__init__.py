"""The process and its machine: the loop, the disk, who owns a run, addresses of this machine."""
