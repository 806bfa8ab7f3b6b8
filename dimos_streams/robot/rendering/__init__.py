"""The views of the simulated sensors: camera and lidar, by rays or by OpenGL."""
