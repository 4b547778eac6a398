"""Run `quiet install-service` and `quiet remove-service`: print results to stdout and return the exit code."""

from __future__ import annotations


def install_service(profile: str, cpus: str | None, trust: bool, root: str, as_json: bool) -> int:
    """Install a systemd unit that applies a profile after each boot and restores the settings when the unit stops."""
    from quiet.cli import json_output, text, text_host
    from quiet.host.host import Host
    from quiet.service import service
    from quiet.settings.profile import load

    done = service.install(Host(root), load(profile), cpus, trust)
    text.show(done, as_json, json_output.service, text_host.service_installed)
    return 0


def remove_service(root: str, as_json: bool) -> int:
    """Stop the unit and remove it. Returns 4 if a setting that the unit had applied could not be restored."""
    from quiet.cli import json_output, text, text_host
    from quiet.host.host import Host
    from quiet.service import service

    done = service.remove(Host(root))
    text.show(done, as_json, json_output.service, text_host.service_removed)
    return 4 if done.left else 0
