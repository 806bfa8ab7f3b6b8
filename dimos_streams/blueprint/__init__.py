"""Blueprints: inert descriptions of robots, from YAML or Python, that can be checked, drawn and run."""

from dimos_streams.blueprint.compose import blueprint, include, module
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.documents.problem import BlueprintError, Problem

__all__ = ["Blueprint", "BlueprintError", "ModuleSpec", "Problem", "blueprint", "include", "module"]
