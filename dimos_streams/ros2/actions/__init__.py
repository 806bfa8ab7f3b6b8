"""Actions of ROS 2 robots as skills."""
