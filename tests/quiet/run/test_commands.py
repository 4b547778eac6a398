"""Which commands pin themselves, which start containers beside the isolated CPUs, and the option that helps."""

from __future__ import annotations

import pytest

from quiet.run.commands import find_start, pins_itself, warning


@pytest.mark.parametrize(
    ("command", "position"),
    [
        ("podman run image", 2),
        ("/usr/bin/docker run --rm image ls", 2),
        ("podman container run image", 3),
        ("docker container create image", 3),
        ("podman --log-level debug run image", 4),
        ("podman --log-level=debug --remote run image", 4),
        ("nerdctl --namespace k8s.io run image", 4),
        ("docker --context run run image", 4),
        ("sudo docker run image", 3),
        ("sudo -n -E A=1 podman run image", 6),
        ("env A=1 /usr/bin/podman run image", 4),
        ("env -u X podman run image", 5),
        ("sudo -u root podman run image", 5),
        ("nice -n 5 timeout -k 1 60 podman run image", 9),
        ("time -o file chrt -f 50 podman run image", 8),
    ],
)
def test_the_option_goes_right_after_run(command: str, position: int) -> None:
    words = command.split()
    start = find_start(words, "/quiet.slice", 0)
    assert start is not None
    assert start.added(words) == [*words[:position], "--cgroup-parent=quiet.slice", *words[position:]]


@pytest.mark.parametrize(
    "command",
    [
        "podman ps",
        "docker build .",
        "docker compose ps",
        "podman",
        "podman --version",
        "./podman-tests run",
        "podman run --cgroup-parent=quiet.slice image",
        "podman run --cgroup-parent quiet.slice image",
        "podman run --cgroups=disabled image",
        "sh -c podman",
        "sudo ls podman run",
        "A=1 podman run image",
        "sudo",
        "",
    ],
)
def test_other_commands_and_those_that_name_a_cgroup_are_left_alone(command: str) -> None:
    assert find_start(command.split(), "/quiet.slice", 0) is None


def test_without_systemd_the_parent_is_a_path() -> None:
    start = find_start(["podman", "run", "image"], "/quiet", 0)
    assert start is not None
    assert start.option == "--cgroup-parent=/quiet"


def test_podman_without_root_stays_in_the_cgroup_of_the_command() -> None:
    start = find_start(["podman", "run", "image"], "/quiet.slice", 1000)
    assert start is not None
    assert start.option == "--cgroups=disabled"
    assert "add --cgroups=disabled" in warning(start)


def test_podman_with_sudo_is_roots() -> None:
    start = find_start(["sudo", "podman", "run", "image"], "/quiet.slice", 1000)
    assert start is not None
    assert start.option == "--cgroup-parent=quiet.slice"


def test_dockers_daemon_starts_a_users_container_as_root_does() -> None:
    start = find_start(["docker", "run", "image"], "/quiet.slice", 1000)
    assert start is not None
    assert start.option == "--cgroup-parent=quiet.slice"


def test_if_no_option_helps_the_warning_says_so() -> None:
    start = find_start(["nerdctl", "run", "image"], "/quiet.slice", 1000)
    assert start is not None
    assert "will not run on the isolated CPUs" in warning(start)


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        ("docker compose up", "`cgroup_parent: quiet.slice` for its service in the compose file"),
        ("sudo podman compose -f a.yml run test", "`cgroup_parent: quiet.slice` for its service in the compose file"),
        ("docker-compose up", "`cgroup_parent: quiet.slice` for its service in the compose file"),
        ("docker exec name ./bench", "create it with --cgroup-parent=quiet.slice"),
        ("podman container start name", "create it with --cgroup-parent=quiet.slice"),
    ],
)
def test_where_a_container_has_its_cgroup_already_the_warning_says_what_to_do(command: str, remedy: str) -> None:
    start = find_start(command.split(), "/quiet.slice", 1000)
    assert start is not None
    assert not start.option
    assert remedy in warning(start)


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (["taskset", "-c", "2", "./a"], "taskset"),
        (["env", "A=1", "/usr/bin/numactl", "-C2", "./a"], "/usr/bin/numactl"),
        (["cbench", "run", "hash"], "cbench"),
        (["make", "-j2"], ""),
        (["./bench", "--mode", "taskset"], ""),
        (["go", "test", "./cbench"], ""),
        (["nice", "-n", "5", "taskset", "-c", "2", "./a"], "taskset"),
        (["sh", "-c", "taskset -c 2 ./a"], ""),
        ([], ""),
    ],
)
def test_a_command_pins_itself_when_its_program_pins(command: list[str], word: str) -> None:
    assert pins_itself(command) == word
