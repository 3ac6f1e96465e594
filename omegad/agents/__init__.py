"""What speaks with agents: the hooks of their hosts, the tools they are given, the guard of their pushes."""
