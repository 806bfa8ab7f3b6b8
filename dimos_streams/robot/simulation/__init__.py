"""The simulated room: the scene, its people, and the physics of the base. No bus, no module."""
