"""What the kernel and the container engine say and do: processes, cgroups, sockets, signals."""
