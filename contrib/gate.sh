#!/bin/sh
# Run the gate for a CI job: gate.sh FILE [OPTION...]. Writes gate.md, gate.xml, gate.json, gate.log and the raw results
# (gate.runs) to $GATE_OUT (default: gate-results), and replaces files of an earlier run. Appends the summary, or the
# error, to $GITHUB_STEP_SUMMARY if this variable is set. Exits with the gate's exit code, or with 2 without a summary.
# $GATE_NEW: the revision to judge (default: the file's). $GATE_BASE: a branch or commit; its merge base with $GATE_NEW
# (default: HEAD) is the revision to compare with.
set -u
if [ $# = 0 ]; then
	echo "usage: gate.sh FILE [OPTION...], where FILE is the path of gate.toml" >&2
	exit 2
fi
file=$1
shift
out=${GATE_OUT:-gate-results}
mkdir -p "$out" || exit 2
rm -rf "$out/gate.runs" "$out/gate.md" "$out/gate.xml" "$out/gate.json" "$out/gate.log" || exit 2

gate() {
	if ! command -v cbench >/dev/null; then
		echo "cbench is not installed on this runner, or its directory is not in PATH" >&2
		return 2
	fi
	if [ -n "${GATE_BASE:-}" ]; then
		if ! base=$(git -C "$(dirname "$file")" merge-base "$GATE_BASE" "${GATE_NEW:-HEAD}"); then
			echo "no merge base of $GATE_BASE and ${GATE_NEW:-HEAD}: a name is wrong, or the history is not whole (fetch-depth: 0)" >&2
			return 2
		fi
		set -- --old "$base" "$@"
	fi
	if [ -n "${GATE_NEW:-}" ]; then set -- --new "$GATE_NEW" "$@"; fi
	cbench gate "$file" "$@" --markdown "$out/gate.md" --junit "$out/gate.xml" --artifacts "$out/gate.runs" --json \
		>"$out/gate.json"
}

gate "$@" 2>"$out/gate.log"
code=$?
cat "$out/gate.log" >&2
if [ ! -s "$out/gate.md" ]; then
	code=2 # 1 means a regression, which cannot be claimed without a summary
	printf '**cbench gate: cannot judge**\n\n    %s\n' "$(tail -n 1 "$out/gate.log")" >"$out/gate.md"
fi
if [ ! -s "$out/gate.xml" ]; then # cbench was not started
	message=$(tail -n 1 "$out/gate.log" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/"/\&quot;/g')
	printf '<testsuite name="cbench gate" tests="1" failures="0" errors="1" skipped="0" time="0.000">\n' >"$out/gate.xml"
	printf '  <testcase classname="cbench.gate" name="gate"><error message="%s" /></testcase>\n</testsuite>\n' "$message" \
		>>"$out/gate.xml"
fi
cat "$out/gate.md"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat "$out/gate.md" >>"$GITHUB_STEP_SUMMARY"; fi
exit "$code"
