"""Names of ROS 2 for topics, services and types, and their names on DDS."""

from __future__ import annotations

import re

_TOPIC = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
_NAMESPACE = re.compile(r"(/[A-Za-z_][A-Za-z0-9_]*)*")
_TYPE = re.compile(r"[a-z][a-z0-9_]*/(msg|srv|action)/[A-Z][A-Za-z0-9_]*")


def checked_namespace(namespace: str) -> str:
    """A namespace such as ``"/robot1"``, or nothing. Raises ``ValueError``."""
    if not _NAMESPACE.fullmatch(namespace):
        raise ValueError(f"{namespace!r} is no namespace of ROS: it is empty, or begins with a slash ('/robot1')")
    return namespace


def checked_topic(topic: str) -> str:
    """A topic or the name of an action as ROS has it. Raises ``ValueError``."""
    if not _TOPIC.fullmatch(topic):
        raise ValueError(f"{topic!r} is no name of ROS: letters, digits and _ between slashes, no digit first")
    return topic


def checked_type(name: str) -> str:
    """A type's name such as ``"nav_msgs/msg/Odometry"``. Raises ``ValueError``."""
    if not _TYPE.fullmatch(name):
        raise ValueError(f"{name!r} is no type of ROS: it is of the form 'nav_msgs/msg/Odometry'")
    return name


def absolute(name: str, namespace: str) -> str:
    """A name in a namespace: ``odom`` is ``/robot1/odom`` there, ``/odom`` stays what it is."""
    return name if name.startswith("/") else f"{namespace}/{name}"


def ros_type(lcm_name: str) -> str:
    """``"nav_msgs/msg/Odometry"`` for ``"nav_msgs.Odometry"``."""
    package, _, name = lcm_name.partition(".")
    return f"{package}/msg/{name}"


def lcm_type(name: str) -> str:
    """``"nav_msgs.Odometry"`` for ``"nav_msgs/msg/Odometry"``."""
    package, _, rest = name.partition("/")
    return f"{package}.{rest.rpartition('/')[2]}"


def dds_type(name: str) -> str:
    """``"nav_msgs::msg::dds_::Odometry_"`` for ``"nav_msgs/msg/Odometry"``."""
    package, kind, short = name.split("/")
    return f"{package}::{kind}::dds_::{short}_"


def shown_type(dds_name: str) -> str:
    """A type's name on DDS as ROS has it, where it is one of ROS: for people."""
    parts = dds_name.split("::")
    if len(parts) == 4 and parts[2] == "dds_":
        return f"{parts[0]}/{parts[1]}/{parts[3].removesuffix('_')}"
    return dds_name


def dds_topic(topic: str) -> str:
    """The topic of DDS for an absolute topic of ROS: ``"rt/odom"``."""
    return f"rt{topic}"


def dds_request(service: str) -> str:
    """The topic of DDS on which an absolute service of ROS takes requests."""
    return f"rq{service}Request"


def dds_reply(service: str) -> str:
    """The topic of DDS on which an absolute service of ROS replies."""
    return f"rr{service}Reply"
