"""What the simulated sensors see: camera and lidar, by rays or by OpenGL, and a map from above."""
