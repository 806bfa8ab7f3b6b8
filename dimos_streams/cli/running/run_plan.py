"""The plan of a run: what the command ``run`` was asked to do, checked and complete."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass, replace

from pydantic import SecretStr

from dimos_streams.blueprint.files.draft import Draft
from dimos_streams.blueprint.kinds import RECORDER, bridge_in, is_of
from dimos_streams.blueprint.load import drafted
from dimos_streams.blueprint.machines import part_of
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.names import run_name
from dimos_streams.blueprint.settings import COMMAND_LINE
from dimos_streams.blueprint.wiring import agents_of
from dimos_streams.bus import bus_url
from dimos_streams.bus.url import leaves_process
from dimos_streams.cli.option_groups.bridge_choice import environment_token
from dimos_streams.cli.option_groups.run_request import Mode, RunRequest
from dimos_streams.cli.running.configured_blueprint import configure, refuse_draft
from dimos_streams.cli.running.foxglove_plan import with_foxglove
from dimos_streams.cli.running.record_plan import NAME, RecordPlan
from dimos_streams.common.process.loopback import BRIDGE_HOST, BRIDGE_PORT
from dimos_streams.documents.problem import BlueprintError
from dimos_streams.errors import UserError
from dimos_streams.module import LOSS_BOUND_S
from dimos_streams.operator.agents import addressee, public_name
from dimos_streams.operator.known_names import SAY
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.parts.part import Part
from dimos_streams.runtime.run_directories import new_run_dir

_WAIT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """One run, before it starts."""

    request: RunRequest
    blueprint: Blueprint
    """The blueprint that is run: all of it, or this machine's part."""
    part: Part | None = None
    """The part of a blueprint that it is, if that has several machines."""
    bridge_elsewhere: ModuleSpec | None = None
    """The (first) bridge of the whole blueprint, if this machine's part has none."""
    record: RecordPlan | None = None

    @property
    def mode(self) -> Mode:
        """The mode that was asked for."""
        return self.request.mode

    @property
    def wait_s(self) -> float:
        """The maximum wait for the parts on other machines, in seconds."""
        return _WAIT_S if self.request.wait_s is None else self.request.wait_s

    def options(self) -> RunOptions:
        """Return the options for the runtime. This makes the run's directory; in virtual time there is none, so that
        runs are alike."""
        of_any_mode = RunOptions(
            bus_url="memq://" if self.mode == "virtual" else self._bus_url(),
            host=self.host,
            port=self.port,
            seed=self.request.seed,
            token=self.token,
            loss_bound_s=LOSS_BOUND_S if self.request.loss_bound_s is None else self.request.loss_bound_s,
        )
        if self.mode == "virtual":
            return of_any_mode
        return replace(
            of_any_mode,
            run_dir=new_run_dir(run_name(self.blueprint.name, self.part.machine if self.part else "")),
            bridge=(self.request.bridge_url or "").rstrip("/"),
            machine=self.part.machine if self.part else "",
            stamped_on=self.part.stamped_on if self.part else {},
            agents=self.part.agents if self.part else frozenset(),
        )

    def _bus_url(self) -> str:
        """Return the URL of the bus, which is checked before anything starts."""
        url = bus_url(self.request.bus)
        if not leaves_process(url) and self.mode == "live":
            raise UserError(f"{url!r} does not leave its process; it goes with --in-process only")
        return url

    @property
    def bridge(self) -> str | None:
        """The name of the (first) bridge module, or None if there is none."""
        return bridge_in(self.blueprint)

    @property
    def serves(self) -> bool:
        """True if the bridge can be reached over HTTP."""
        if self.bridge is None:
            return False
        return bool(self.blueprint.modules[self.bridge].config.get("http", self.mode != "virtual"))

    @property
    def recorders(self) -> set[str]:
        """The names of the modules of a live run that record it."""
        own = {spec.name for spec in self.blueprint.modules.values() if is_of(spec, RECORDER)}
        return own if self.record is None else {NAME, *own}

    def listener(self, text: str) -> str | None:
        """Return the skill of the agent to whom a text is said: the only one, or the one that it begins with,
        "robot1: …".

        It is None if no module of the blueprint has such a skill. Raises ``UserError`` if the text could go to
        several.
        """
        names = listeners_of(self.blueprint)
        if len(names) <= 1:
            return names[0] if names else None
        name = addressee(text)
        addressed = f"{name}_{SAY}" if name else SAY
        if addressed in names:
            return addressed
        known = ", ".join(each.removesuffix(f"_{SAY}") for each in names)
        raise UserError(f"--say {text!r} does not begin with the name of an agent and a colon (agents: {known})")

    @property
    def host(self) -> str:
        """The address on which the bridge will serve."""
        return _host_in(self.blueprint, self.bridge) if self.bridge else BRIDGE_HOST

    @property
    def port(self) -> int:
        """The port on which the bridge will serve."""
        configured = self.blueprint.modules[self.bridge].config.get("port") if self.bridge else None
        return configured if isinstance(configured, int) else BRIDGE_PORT

    @property
    def token(self) -> str | None:
        """The token that its bridge wants, by its own setting or because it was given for the run: all that asks the
        bridge needs it, and viewers need it too."""
        bridge = self.blueprint.modules[self.bridge] if self.bridge else self.bridge_elsewhere
        configured = bridge.config.get("token") if bridge else None
        if isinstance(configured, SecretStr):
            return configured.get_secret_value()
        return configured if isinstance(configured, str) else self.request.token or environment_token()


def prepare(request: RunRequest) -> RunPlan:
    """Return the plan of a run: the blueprint with all settings, or a machine's part of it. Raises ``UserError``.

    Settings may say more of the hub and of the server for Foxglove than the options that are about them.
    """
    hub, machine = request.hub, request.machine
    draft = drafted(request.reference)
    bridge = bridge_in(draft.blueprint)
    of_hub = [f"{bridge}.hub.url={hub}"] if bridge is not None and hub is not None else []
    viewed = replace(draft, blueprint=with_foxglove(draft.blueprint, address=request.foxglove, machine=machine))
    whole = configure(viewed, [*of_hub, *(request.settings or ())])
    whole = replace(whole, blueprint=_with_port(whole.blueprint, request.port, virtual=request.virtual_time))
    own = whole.blueprint if machine is None else _part_of(whole, machine)
    refuse_draft(replace(whole, blueprint=own))
    if hub is not None and bridge_in(own) is None:
        where = f"blueprint {own.name!r}" if machine is None else f"machine {machine!r}"
        raise UserError(f"{where} has no bridge, so there is no journal to ship to --hub")
    bridge = bridge_in(whole.blueprint)
    return RunPlan(
        request=request,
        blueprint=own,
        part=None if machine is None else Part.of(draft.blueprint, machine, bridge),
        bridge_elsewhere=whole.blueprint.modules[bridge] if bridge and bridge_in(own) is None else None,
        record=RecordPlan.of(request),
    )


def _part_of(draft: Draft, machine: str) -> Blueprint:
    """Return a machine's part. Raises ``UserError``, with all errors if the machine does not know what crosses."""
    if not draft.problems:
        with contextlib.suppress(BlueprintError):
            return part_of(draft.blueprint, machine)
    refuse_draft(draft)
    return part_of(draft.blueprint, machine)


def _with_port(blueprint: Blueprint, port: int | None, *, virtual: bool) -> Blueprint:
    bridge = bridge_in(blueprint)
    if bridge is not None and port is not None:
        blueprint = blueprint.configured({f"{bridge}.port": port}, source=COMMAND_LINE)
        if virtual:
            blueprint = blueprint.configured({f"{bridge}.http": True}, source=COMMAND_LINE)
    if bridge is not None and blueprint.modules[bridge].config.get("port") == 0:
        chosen = _free_port(_host_in(blueprint, bridge))
        blueprint = blueprint.configured({f"{bridge}.port": chosen}, source="port 0")
    return blueprint


def _host_in(blueprint: Blueprint, bridge: str) -> str:
    return str(blueprint.modules[bridge].config.get("host", BRIDGE_HOST))


def _free_port(host: str) -> int:
    """Return a port that is free now: other processes and commands have to know which one the bridge will have.
    Raises ``UserError`` for a host that this machine is not."""
    try:
        with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as server:
            port: int = server.getsockname()[1]
            return port
    except OSError as error:
        raise UserError(f"the bridge can't listen on host {host!r}: {error.strerror}") from error


def listeners_of(blueprint: Blueprint) -> list[str]:
    """Return the skills by which operators talk to the blueprint's agents: "say", or "robot1_say"."""
    agents = agents_of(blueprint)
    return [public_name(name, SAY) for name in blueprint.modules if name in agents]
