"""The table of methods: everything that can be asked of omegad. Modules of rooms have theirs in `METHODS`."""

from omegad.catalog import rooms
from omegad.requests.method import CommandMethod, Method

_DECLARED: list[Method] = [method for module in rooms.modules() for method in getattr(module, "METHODS", ())]

ALL = {method.name: method for method in sorted(_DECLARED, key=lambda method: method.name)}
"""Every method by its name."""

SERVED = {
    name: method
    for name, method in ALL.items()
    if not (isinstance(method, CommandMethod) and method.is_internal)
}
"""The methods of the socket."""
