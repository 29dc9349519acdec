#!/usr/bin/env bash
# The report of make mac-report has versions, but names neither the user nor the machine.
. "$(dirname "$0")/common.sh"
mkdir "$scratch/bin" "$scratch/jane"
printf '#!/bin/sh\necho janes-computer\n' >"$scratch/bin/hostname"
cat >"$scratch/bin/swift" <<'END'
#!/bin/sh
printf 'Swift 6.9 at %s/tools' "$HOME"
for place in Users home var/folders; do printf ', /%s/jane/tools' "$place"; done
echo ' of jane, "jane" on janes-computer; janet and Mac14,2 stay'
exit 3
END
printf '#!/bin/sh\necho jane\n' >"$scratch/bin/id"
chmod +x "$scratch"/bin/*
# The folder may belong to another user, as on hosted machines.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$PWD
HOME=$scratch/jane PATH="$scratch/bin:$PATH" REPORT=$scratch/report.txt .ci/mac-report --versions >/dev/null
report=$(cat "$scratch/report.txt")
if grep -w -e jane -e janes-computer "$scratch/report.txt"; then fail "the report has a name (above)"; fi
for text in "Swift 6.9 at ~/tools" "janet and Mac14,2 stay" "commit $(git rev-parse HEAD)" "== system" "failed with status 3"; do
  case "$report" in
  *"$text"*) ;;
  *) fail "the report lacks '$text': $report" ;;
  esac
done
passed "make mac-report: versions, a failed step, and no names"
