# The check of action.yml: its inputs are variables. Writes the module, that of the baseline, and the report.
set -euo pipefail

report=$RUNNER_TEMP/shardlog.md
arguments=()
write_module() { if [ -n "$RUN" ]; then bash -euo pipefail -c "$RUN"; fi; }

write_module
if [ -z "$BASELINE" ] && [ -n "$BASELINE_REF" ] && [ -n "$RUN" ]; then
  git cat-file -e "$BASELINE_REF^{commit}" 2>/dev/null || git fetch --quiet --depth=1 origin "$BASELINE_REF"
  tree=$RUNNER_TEMP/shardlog-baseline
  git worktree add --quiet --force --detach "$tree" "$BASELINE_REF"
  before=${MODULE%.*}.before.${MODULE##*.}
  if (cd "$tree" && write_module) && cp "$tree/$MODULE" "$before"; then
    BASELINE=$before
  else
    echo "::warning title=shardlog::there is no baseline: the command fails at $BASELINE_REF"
  fi
  git worktree remove --force "$tree"
fi

[ -z "$BASELINE" ] || arguments+=(--baseline "$BASELINE")
[ -z "$EXPECT" ] || arguments+=(--expect "$EXPECT")
while IFS= read -r lint; do [ -z "$lint" ] || arguments+=(--fail-on "$lint"); done <<< "$FAIL_ON"
if [ ${#arguments[@]} -eq 0 ]; then
  echo "::warning title=shardlog::there is nothing to check: no baseline, no expected shardings, no lints"
  exit 0
fi
[ -z "$SARIF" ] || arguments+=(--format "sarif=$SARIF")
while IFS= read -r option; do [ -z "$option" ] || arguments+=("$option"); done <<< "$OPTIONS"

status=0
python -m shardlog check "$MODULE" "${arguments[@]}" --format github --format "markdown=$report" || status=$?
if [ "$status" -le 1 ]; then
  cat "$report" >> "$GITHUB_STEP_SUMMARY"
  echo "report=$report" >> "$GITHUB_OUTPUT"
fi
exit "$status"
