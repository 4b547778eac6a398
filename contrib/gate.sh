#!/bin/sh
# Runs the gate for a CI job: gate.sh FILE [OPTION...]. Writes gate.md, gate.xml and gate.json to $GATE_OUT (gate-results),
# appends the summary to $GITHUB_STEP_SUMMARY where that is set, and ends with the gate's exit code.
set -u
file=${1:?the name of gate.toml is missing}
shift
out=${GATE_OUT:-gate-results}
mkdir -p "$out" || exit 2
cbench gate "$file" "$@" --markdown "$out/gate.md" --junit "$out/gate.xml" --artifacts "$out/runs" --json >"$out/gate.json"
code=$?
if [ -s "$out/gate.md" ]; then
	cat "$out/gate.md"
	if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat "$out/gate.md" >>"$GITHUB_STEP_SUMMARY"; fi
fi
exit "$code"
