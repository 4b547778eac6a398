"""Define the options of the commands for the service, the boot parameters, and the kernel's build options."""

from __future__ import annotations

from typing import Annotated

import typer

from quiet.cli import boot, host
from quiet.cli.options import REBOOT, Cpus, Json, Profile, Root

_kernel = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Check the build configuration of the kernel.")
_boot = typer.Typer(no_args_is_help=True, help="Set kernel parameters, which take effect at the next boot.")


def install_service(
    profile: Profile = "bench",
    cpus: Cpus = None,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust-program", help="Install even if a user other than root can modify this program or the profile."
        ),
    ] = False,
    root: Root = "/",
    as_json: Json = False,
) -> None:
    """Install a systemd service that applies a profile at boot. Stopping quiet.service restores the settings.

    A profile file outside /etc is copied to /etc/quiet. With --root, only the files are written.
    """
    raise typer.Exit(host.install_service(profile, cpus, trust, root, as_json))


def remove_service(root: Root = "/", as_json: Json = False) -> None:
    """Stop the systemd service, restore, and remove its files."""
    raise typer.Exit(host.remove_service(root, as_json))


_Loader = Annotated[
    str | None, typer.Option("--loader", metavar="NAME", help="The boot loader to use if several are installed.")
]


@_boot.command("plan")
def boot_plan(
    profile: Profile = "bench", cpus: Cpus = None, root: Root = "/", loader: _Loader = None, as_json: Json = False
) -> None:
    """Show the parameters to add, the files, and the commands. Writes nothing."""
    raise typer.Exit(boot.plan(profile, cpus, root, loader, as_json))


@_boot.command("apply")
def boot_apply(
    profile: Profile = "bench", cpus: Cpus = None, root: Root = "/", loader: _Loader = None, as_json: Json = False
) -> None:
    """Add a profile's parameters to the command line of later boots. Idempotent."""
    raise typer.Exit(boot.apply(profile, cpus, root, loader, as_json))


@_boot.command("remove")
def boot_remove(root: Root = "/", as_json: Json = False) -> None:
    """Remove quiet's parameters from the command line of later boots.

    Restores every boot file that quiet changed. Exits with 4 if a file could not be restored.
    """
    raise typer.Exit(boot.remove(root, as_json))


@_boot.command("once")
def boot_once(
    profile: Profile = "bench",
    cpus: Cpus = None,
    root: Root = "/",
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="FILE", help="Kernel image. Default: the running one.")
    ] = None,
    initrd: Annotated[
        str | None, typer.Option("--initrd", metavar="FILE", help="Initial RAM disk. Default: the image's own.")
    ] = None,
    load_only: Annotated[
        bool, typer.Option("--load-only", help="Load the kernel only; the output says how to start it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Restart now with a profile's parameters, for one boot (kexec)."""
    raise typer.Exit(boot.once(profile, cpus, root, kernel, initrd, load_only, as_json))


@_kernel.command("check")
def kernel_check(
    fragments: Annotated[
        list[str] | None, typer.Argument(help="Check only these fragments, such as isolation. Default: all.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="The configuration file of another kernel, such as .config."),
    ] = None,
    root: Root = "/",
    as_json: Json = False,
) -> None:
    """Report the build options that quiet can use. Exits with 0 when none is missing or unknown."""
    raise typer.Exit(host.kernel_check(fragments or (), config, root, as_json))


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(name="install-service", rich_help_panel=REBOOT)(install_service)
    app.command(name="remove-service", rich_help_panel=REBOOT)(remove_service)
    app.add_typer(_kernel, name="kernel", rich_help_panel=REBOOT)
    app.add_typer(_boot, name="boot", rich_help_panel=REBOOT)
