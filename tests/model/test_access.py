"""The access list: the documented rules, in their order."""

import pytest

from keepwell.model.access import OPEN, AccessList
from keepwell.model.errors import Denied

DEVICES = ("laptop", "desk")


def rules(device: str, *, admins: tuple[str, ...] = ("desk",)) -> AccessList:
    return AccessList(device, admins, DEVICES, configured=True)


CASES = [
    ("desk", "meta", False, "reserved_category"),
    ("desk", "usage_stats", False, "reserved_category"),
    ("desk", "projects", True, "admin"),
    ("desk", "anything", True, "admin"),
    *[
        ("laptop", name, False, "base_requires_admin")
        for name in ("base", "infrastructure", "projects", "workflow_global", "nodes", "ecosystem")
    ],
    ("laptop", "laptop", True, "device_self"),
    ("laptop", "desk", False, "device_requires_self"),
    ("laptop", "workflow_laptop", True, "workflow_device_self"),
    ("laptop", "workflow_desk", False, "workflow_device_requires_self"),
    ("laptop", "workflow_website", False, "workflow_project_requires_admin"),
    ("laptop", "notes", False, "not_authorized"),
    ("memo-agent", "memo_daily", True, "agent_scoped"),
    ("memo-agent", "memo", False, "not_authorized"),
    ("memo-agent", "other_daily", False, "not_authorized"),
    ("-agent", "_x", True, "agent_scoped"),
]


@pytest.mark.parametrize(("device", "category", "allowed", "rule"), CASES)
def test_a_rule_decides_as_documented(device: str, category: str, allowed: bool, rule: str) -> None:
    assert rules(device).rule_for(category) == (allowed, rule)


@pytest.mark.parametrize(("device", "category", "allowed", "rule"), CASES)
def test_a_denial_names_the_rule_and_a_remedy(device: str, category: str, allowed: bool, rule: str) -> None:
    if allowed:
        rules(device).require(category)
        return
    with pytest.raises(Denied, match=rule) as raised:
        rules(device).require(category)
    assert raised.value.hint


@pytest.mark.parametrize("category", ["projects", "base", "anything", "workflow_x"])
def test_weakness_50_without_a_list_a_single_device_writes_everything(category: str) -> None:
    assert OPEN.rule_for(category) == (True, "no_acl")


@pytest.mark.parametrize("category", ["meta", "usage_stats"])
def test_reserved_names_are_reserved_without_a_list_too(category: str) -> None:
    assert OPEN.rule_for(category) == (False, "reserved_category")


@pytest.mark.parametrize("twin", ["META", "Usage_Stats", "\uff4deta"])
@pytest.mark.parametrize("rules_", [OPEN, rules("desk")], ids=["no list", "admin"])
def test_a_name_that_a_file_system_takes_for_a_reserved_one_is_reserved_too(twin: str, rules_: AccessList) -> None:
    assert rules_.rule_for(twin) == (False, "reserved_category")


@pytest.mark.parametrize("twin", ["Projects", "BASE", "eco\u017fystem"])
def test_a_name_that_a_file_system_takes_for_one_of_the_admins_is_theirs_too(twin: str) -> None:
    assert rules("laptop").rule_for(twin) == (False, "base_requires_admin")
    assert AccessList("laptop", (), (twin,), configured=True).rule_for(twin) == (False, "base_requires_admin")
    assert rules("desk").rule_for(twin) == (True, "admin")


@pytest.mark.parametrize("device", ["", "stranger", "agent", "laptop2"])
def test_a_device_that_no_rule_names_writes_nothing(device: str) -> None:
    names = ("notes", "laptop", "workflow_laptop", "workflow_", "_x", "-agent_x")
    assert not [name for name in names if rules(device).rule_for(name)[0]]


def test_an_empty_list_is_a_list_and_fails_closed() -> None:
    assert AccessList("laptop", (), (), configured=True).rule_for("notes") == (False, "not_authorized")
