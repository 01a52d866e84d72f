"""Who may write which category: the access list of a fleet. Everybody reads everything."""

from dataclasses import dataclass
from typing import Final

from keepwell.model.category import name_key
from keepwell.model.errors import Denied

RESERVED: Final = ("meta", "usage_stats")
ADMIN_ONLY: Final = ("base", "infrastructure", "projects", "workflow_global", "nodes", "ecosystem")
_WORKFLOW: Final = "workflow_"
_AGENT: Final = "-agent"


@dataclass(frozen=True, slots=True)
class AccessList:
    """The rules of the `[acl]` table and the device that they are asked for.

    `configured` is False where neither admins nor devices are listed: then one device may write everything but the
    reserved names.
    """

    device: str = ""
    admin_devices: tuple[str, ...] = ()
    device_categories: tuple[str, ...] = ()
    configured: bool = False

    def rule_for(self, category: str) -> tuple[bool, str]:
        """Whether the device may write the category, and the code of the rule that decides."""
        # a name that a file system may take for one of these is kept as well as it
        key = name_key(category)
        if key in RESERVED:
            return False, "reserved_category"
        if not self.configured:
            return True, "no_acl"
        if self.device in self.admin_devices:
            return True, "admin"
        if key in ADMIN_ONLY:
            return False, "base_requires_admin"
        if category in self.device_categories:
            own = category == self.device
            return own, "device_self" if own else "device_requires_self"
        if category.startswith(_WORKFLOW):
            return self._workflow(category.removeprefix(_WORKFLOW))
        if self.device.endswith(_AGENT) and category.startswith(self.device.removesuffix(_AGENT) + "_"):
            return True, "agent_scoped"
        return False, "not_authorized"

    def _workflow(self, owner: str) -> tuple[bool, str]:
        if owner not in self.device_categories:
            return False, "workflow_project_requires_admin"
        own = owner == self.device
        return own, "workflow_device_self" if own else "workflow_device_requires_self"

    def require(self, category: str) -> None:
        """Raise `Denied`, naming the rule and the setting that would allow it, unless the device may write."""
        allowed, rule = self.rule_for(category)
        if not allowed:
            raise Denied(f"the access list does not let this device write {category!a} ({rule}).", hint=_hint(rule))


def _hint(rule: str) -> str:
    match rule:
        case "reserved_category":
            return "Choose another name; this one is reserved."
        case "device_requires_self" | "workflow_device_requires_self":
            return "It belongs to another device; only that one (MCP_DEVICE) and those in [acl] admin_devices write it."
        case _:
            return "Add this device (MCP_DEVICE) to [acl] admin_devices in the configuration file to allow it."


OPEN: Final = AccessList()
