#!/usr/bin/env bash
# What make mac-report writes has the versions, and names neither the user nor the machine.
. "$(dirname "$0")/common.sh"
mkdir "$scratch/bin" "$scratch/jane"
printf '#!/bin/sh\necho janes-computer\n' >"$scratch/bin/hostname"
cat >"$scratch/bin/swift" <<'END'
#!/bin/sh
printf 'Swift 6.9 at %s/tools' "$HOME"
for place in Users home var/folders; do printf ', /%s/jane/tools' "$place"; done
echo ' on janes-computer'
exit 3
END
chmod +x "$scratch"/bin/*
HOME=$scratch/jane PATH="$scratch/bin:$PATH" REPORT=$scratch/report.txt .ci/mac-report --versions >/dev/null
report=$(cat "$scratch/report.txt")
case "$report" in
*jane*) fail "the report has a name: $(grep jane "$scratch/report.txt")" ;;
esac
for text in "Swift 6.9 at ~/tools" "commit $(git rev-parse HEAD)" "== system" "failed with status 3"; do
  case "$report" in
  *"$text"*) ;;
  *) fail "the report lacks '$text': $report" ;;
  esac
done
passed "make mac-report: versions, a failed step, and no names"
