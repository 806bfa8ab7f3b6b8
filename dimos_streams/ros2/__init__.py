"""Robots that run ROS 2, reached over DDS without any of ROS: topics both ways, and actions as skills."""
