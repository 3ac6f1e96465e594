"""How many files and connections a process may have open, and what of that is left for whom."""

import resource


def room(wanted: int, reserved: int) -> int:
    """Return how many of *wanted* descriptors there may be beside the *reserved* ones: all, where the system
    lets this process have them.

    The limit that a shell or a service manager sets is raised as far as it has to be and may be; macOS begins
    with 256.
    """
    limit, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + reserved
    if limit != resource.RLIM_INFINITY and limit < needed:
        limit = needed if highest == resource.RLIM_INFINITY else min(needed, highest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, highest))
    return wanted if limit == resource.RLIM_INFINITY else max(1, min(wanted, limit - reserved))
