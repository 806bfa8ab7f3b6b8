"""Skills: methods of modules that agents, operators and scripts call, and that may go on after they answered."""

from dimos_streams.skill.call import Call, OnUpdate, SkillClient
from dimos_streams.skill.declaration import skill
from dimos_streams.skill.info import SkillInfo, name_fault
from dimos_streams.skill.names import public_names
from dimos_streams.skill.policy import (
    BASE,
    MAX_RESOURCES,
    ODOM,
    Approval,
    Audience,
    DuplicateScope,
    OnDuplicate,
    OnLoss,
    SkillPolicy,
    SkillTraits,
)
from dimos_streams.skill.spec import Parameters, SkillSpec, check_undos, skills_of

__all__ = [
    "BASE",
    "MAX_RESOURCES",
    "ODOM",
    "Approval",
    "Audience",
    "Call",
    "DuplicateScope",
    "OnDuplicate",
    "OnLoss",
    "OnUpdate",
    "Parameters",
    "SkillClient",
    "SkillInfo",
    "SkillPolicy",
    "SkillSpec",
    "SkillTraits",
    "check_undos",
    "name_fault",
    "public_names",
    "skill",
    "skills_of",
]
