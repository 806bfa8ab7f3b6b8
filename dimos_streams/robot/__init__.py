"""The stock robot: a simulated base with a camera and a lidar in a furnished room, and its velocity gate."""
