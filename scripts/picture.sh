#!/bin/sh
# Makes docs/report.png, the picture of a report: takes the demo's way, writes its page, and has Chromium draw the beginning of it.
#
#	scripts/picture.sh [BENCHPIN]
set -eu
cd "$(dirname "$0")/.."
benchpin=${1:-build/benchpin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$benchpin" pipeline quickstart --dir "$work/demo" >/dev/null
"$benchpin" report "$work/demo/archive" --key "$work/demo/keys/benchpin.pub" --html "$work/report.html" >/dev/null
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" --window-size=1000,1296 \
	--screenshot="$work/report.png" "file://$work/report.html" 2>/dev/null
size=$(wc -c <"$work/report.png")
[ "$size" -lt 200000 ] || { echo "picture of $size bytes: expected less than 200,000" >&2; exit 1; }
cp "$work/report.png" docs/report.png
echo "docs/report.png: $size bytes"
