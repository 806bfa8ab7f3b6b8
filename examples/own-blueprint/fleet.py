"""Two robots of one description, each in a namespace of its own, and one bridge for both."""

from dimos_streams.blueprint import blueprint, include, module

fleet = blueprint(
    "fleet",
    module("dimos_streams.bridge.module:Bridge", name="bridge"),
    include("warehouse.yaml", namespace="red"),
    include("warehouse.yaml", namespace="blue", set={"gate.max_speed": 0.2, "robot.start_y": -0.6}),
)
