# The comment of action.yml: one for each module, which later runs replace.
set -euo pipefail

mark="<!-- shardlog: $MODULE -->"
body=$RUNNER_TEMP/shardlog-comment.md
{ echo "$mark"; cat "$REPORT"; } > "$body"
comments=repos/$GITHUB_REPOSITORY/issues
listed=$(MARK=$mark gh api --paginate "$comments/$NUMBER/comments" \
  --jq '.[] | select(.body | startswith(env.MARK)) | .id')
known=${listed%%$'\n'*}
if [ -n "$known" ]; then
  gh api --silent --method PATCH "$comments/comments/$known" -F "body=@$body"
else
  gh api --silent --method POST "$comments/$NUMBER/comments" -F "body=@$body"
fi || echo "::warning title=shardlog::cannot comment: set permissions: pull-requests: write"
