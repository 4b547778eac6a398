"""Define and check the options of `cbench ab`, which are stored with the measurement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cbench.ab.analyze import fewest_layouts
from cbench.ab.design import StoppingRule
from cbench.ab.layouts import FOR_ARMS, FREE, MOST_LAYOUTS, PROGRAM, placeholder
from cbench.ab.revisions import commit_of, repository_of
from cbench.external.options import MOST_SECONDS, SECONDS, split_command
from quiet import UsageError, one_line, printable

MOST_BLOCKS = 1_000_000
MOST_ARMS = 20
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
COPY = "(copy)"


@dataclass(frozen=True, slots=True)
class Arm:
    """One program to compare. `text`: its command; `revision`: the commit from which the arm is built, "" for none;
    `environment`: the variables that the arm gets in addition to the environment of cbench.
    """

    name: str
    text: str
    revision: str = ""
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def is_program(self) -> bool:
        """Whether the build command writes the arm's executable to a path that cbench chooses."""
        return PROGRAM in self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class AbOptions:
    """The options of `cbench ab`. All other arms are compared with the first one.

    `folder`: the working directory of commands; `repository`: the repository of revisions; `prefix`: the path of
    `folder` in the repository. `effect`: a share. `budget`: the time limit for measuring in seconds, None for 3 s per
    arm, as in hyperfine. `blocks`: None measures until the effect is detectable or the budget is spent. `layouts`:
    number of builds per arm, which the blocks use in turn; `preset`: the properties that vary between builds.
    """

    arms: tuple[Arm, ...]
    folder: str
    repository: str = ""
    prefix: str = ""
    build: str = ""
    shell: bool = False
    prepare: str = ""
    ignore_failure: bool = False
    timeout: float | None = None
    cpus: tuple[str, ...] = ()
    profile: str = ""
    effect: float = 0.01
    budget: float | None = None
    blocks: int | None = None
    seed: int = 1
    layouts: int = 1
    preset: str = FREE

    def commands(self) -> list[tuple[str, list[str]]]:
        """The name and the argument vector of A, A' and each other arm."""
        first, *others = ((arm.name, split_command(arm.text, self.shell, arm.name)) for arm in self.arms)
        return [first, (f"{first[0]} {COPY}", first[1]), *others]

    @property
    def rule(self) -> StoppingRule:
        """The stopping rule that these options describe."""
        budget = SECONDS * len(self.arms) if self.budget is None else self.budget
        return StoppingRule(
            arms=len(self.arms) + 1,
            effect=self.effect,
            budget_s=budget,
            strict=self.budget is not None,
            blocks=self.blocks,
            layouts=self.layouts,
        )


def ab_options(
    words: Sequence[str],
    *,
    arms: Sequence[str],
    revisions: Sequence[str],
    environments: Sequence[str],
    run: str,
    effect: str,
    base: AbOptions,
) -> AbOptions:
    """Validated options from the command line.

    `words`: one arm per word; `arms`: NAME=CMD; `revisions`: NAME=REV or REV; `environments`: NAME=FILE; `run`: the
    command of revisions and of environments; `base`: the other options, still without arms. Raises UsageError for
    invalid input.
    """
    found = [Arm(name, text) for name, text in zip(_numbered(words), words, strict=True)]
    found += [Arm(*_named(text, "--arm", "CMD")) for text in arms]
    if revisions and not run:
        raise UsageError("--revision: give the command to measure in each revision with --run CMD")
    repository = prefix = ""
    if revisions:
        repository, prefix = repository_of(base.folder)
    for text in revisions:
        name, revision = _named(text, "--revision", "REV") if "=" in text else (text, text)
        found.append(Arm(name, run, commit_of(repository, revision)))
    found = _with_environments(found, environments, run)
    if base.build and not any(arm.revision or arm.is_program for arm in found):
        raise UsageError(
            f"--build applies only to revisions (--revision NAME=REV) and to arms with {PROGRAM} in their command: "
            "add one, or omit --build"
        )
    if run and not revisions and not environments:
        raise UsageError(
            "--run applies only to --revision and --env-file; write commands after --, or as --arm NAME=CMD"
        )
    options = replace(base, arms=tuple(found), repository=repository, prefix=prefix, effect=_share(effect))
    check(options)
    return options


def check(options: AbOptions) -> None:
    """Raises UsageError if arms with these options cannot be measured."""
    names = [arm.name for arm in options.arms]
    if len(names) < 2:
        raise UsageError("two arms are needed: cbench ab -- ./old ./new (quote an arm that has arguments)")
    if len(names) > MOST_ARMS:
        raise UsageError(f"{len(names)} arms: at most {MOST_ARMS} are supported; omit some")
    for name in names:
        if printable(name) != name or "\n" in name or "\t" in name:
            raise UsageError(f"{one_line(name)}: an arm's name cannot contain control characters; use --arm NAME=CMD")
        if name.endswith(COPY):
            raise UsageError(f"{name}: names that end with {COPY} are reserved; rename the arm with --arm NAME=CMD")
        if names.count(name) > 1:
            raise UsageError(f"{name}: two arms have this name; rename one with --arm NAME=CMD")
    for arm in options.arms:
        split_command(arm.text, options.shell, "" if arm.name == arm.text else arm.name)
    budget, blocks, timeout = options.budget, options.blocks, options.timeout
    if budget is not None and not 0 < budget <= MOST_SECONDS:
        raise UsageError(f"--budget {budget:g}: must be above 0 and at most {MOST_SECONDS:,} seconds")
    if timeout is not None and not 0 < timeout <= MOST_SECONDS:
        raise UsageError(f"--timeout {timeout:g}: must be above 0 and at most {MOST_SECONDS:,} seconds")
    if blocks is not None and not 1 <= blocks <= MOST_BLOCKS:
        raise UsageError(f"--blocks {blocks}: must be from 1 to {MOST_BLOCKS:,}")
    if not 0.0001 <= options.effect <= 1:
        raise UsageError(f"--effect {100 * options.effect:g}%: must be from 0.01% to 100%")
    _check_build(options)


def _check_build(options: AbOptions) -> None:
    if any(arm.is_program for arm in options.arms) and PROGRAM not in options.build:
        raise UsageError(
            f"--build has no {PROGRAM}: use it as the path of the executable that the command writes for each arm"
        )
    if options.preset not in FOR_ARMS:
        raise UsageError(f"--preset {options.preset!r}: must be one of {', '.join(FOR_ARMS)}")
    if options.layouts == 1:
        if options.preset != FREE:
            raise UsageError("--preset: has no effect unless layouts, the number of builds of each arm, is above 1")
        return
    fewest = fewest_layouts(len(options.arms) + 1)
    if not fewest <= options.layouts <= MOST_LAYOUTS:
        raise UsageError(
            f"--layouts {options.layouts}: must be from {fewest}, below which no difference can be shown, "
            f"to {MOST_LAYOUTS}"
        )
    if options.blocks is not None and options.blocks < options.layouts:
        raise UsageError(
            f"--layouts {options.layouts}: more than --blocks {options.blocks}, but each block measures only one layout"
        )
    for arm in options.arms:
        if not arm.revision and not arm.is_program:
            raise UsageError(f"--layouts: arm {arm.name} is not built; use a revision, or {PROGRAM} in its command")
    wanted = placeholder(options.preset)
    if wanted not in options.build:
        raise UsageError(f"--build has no {wanted}: without it, all builds of preset {options.preset} are the same")


def _numbered(words: Sequence[str]) -> list[str]:
    """A name for each word; repeated words get a number."""
    return [word if (again := words[:at].count(word) + 1) == 1 else f"{word} #{again}" for at, word in enumerate(words)]


def _named(text: str, option: str, what: str) -> tuple[str, str]:
    name, _, rest = text.partition("=")
    if not name.strip() or not rest.strip():
        raise UsageError(f"{option} {text!r}: write NAME={what}")
    return name.strip(), rest.strip()


def _with_environments(arms: Sequence[Arm], texts: Sequence[str], run: str) -> list[Arm]:
    """The arms with the variables from their NAME=FILE; a NAME without an arm becomes a new arm that executes `run`."""
    found = {arm.name: arm for arm in arms}
    if len(found) != len(arms):
        return list(arms)  # check() reports the invalid names
    for text in texts:
        name, file = _named(text, "--env-file", "FILE")
        if name not in found and not run:
            raise UsageError(
                f"--env-file {text!r}: no arm is named {name!r}; give the command of a new arm with --run CMD"
            )
        arm = found.get(name, Arm(name, run))
        if arm.environment:
            raise UsageError(f"--env-file {text!r}: arm {name!r} already has a file; merge the two files")
        found[name] = Arm(arm.name, arm.text, arm.revision, environment_of(Path(file)))
    return list(found.values())


def environment_of(path: Path) -> tuple[tuple[str, str], ...]:
    """The variables in a file of NAME=VALUE lines; values are literal, except that white space at the end of a line is
    removed. Empty lines and lines that begin with # are skipped.

    Raises UsageError with the line number for any other line, or if the file cannot be read.
    """
    try:
        lines = path.read_text().splitlines() if path.is_file() else None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    if lines is None:
        raise UsageError(f"{path}: {'not a regular file' if path.exists() else 'no such file'}")
    variables: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.strip().partition("=")
        if not equals or not VARIABLE.fullmatch(name) or "\0" in value:
            raise UsageError(f"{path}:{number}: {line.strip()[:60]!r} is not of the form NAME=VALUE")
        variables[name] = value
    return tuple(variables.items())


def _share(text: str) -> float:
    """The share that a text such as "1%" or "0.01" denotes. Raises UsageError for any other text."""
    number = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(%?)", text.replace(" ", ""))
    if number is None:
        raise UsageError(f"--effect {text!r}: write a percentage such as 1%")
    if not number[2] and float(number[1]) >= 1:
        raise UsageError(f"--effect {text}: a share is less than 1; for {number[1]} percent, write {number[1]}%")
    return float(number[1]) / (100 if number[2] else 1)
