#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Lists the measurements, or runs one of them. Results go to standard output;
# those of the operator and the demo also go to out/.
#
# Usage: scripts/bench.sh [NAME]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One line per measurement: its name, what it measures, its command.
readonly GO_BENCH="go test -C monitor -run='^$' -benchmem"
readonly MEASUREMENTS="
policy|decisions of the policy language, binding of policies, facts|$GO_BENCH -bench=. ./policy
engines|decisions of policies beside OPA and Cedar, which agree on every answer|make bench-policy
analysis|the offline analysis of up to 40,000 users, registration of up to 14.5 million documents: 15 minutes, 5 GB in /var/tmp|make bench-analysis
capabilities|parts of the offline analysis, of 400 users (-population=40000 for the paper's)|$GO_BENCH -bench=. ./internal/analysis
manifests|checking manifests with 500 policies|$GO_BENCH -bench=ManyObjects ./internal/monitor/api
operator|the operator with 500 policies, 50 pipelines, and 100 members that are stand-ins: seconds, CPU, memory, requests|make bench-operator
session|what a session costs, a query in it, an interception: 15 minutes, as root|make bench-session
ingest|1,000 documents a second that come while 24 users search Sys-E, beside searches alone: 5 minutes, as root|make bench-ingest
fast|Sys-E's overhead with an engine that picks at random, as busy as BUSY_CYCLES says: 11 minutes, as root|make build-image && .venv/bin/python -m loadgen fast --output out/bench/fast --busy-cycles ${BUSY_CYCLES:-0}
rollback|rolling a worker back, by pages and descriptors, beside forking it again|make setup && make -C supervisor bench-rollback
scrape|decisions of the monitor while its metrics are scraped, beside those while nobody does|$GO_BENCH -bench=Scrape -benchtime=1x ./internal/pipeline
smoke|Sys-E's overhead, 2,000 documents: one round, too few for an answer|make demo SIZE=smoke
quick|Sys-E's overhead, 25,000 documents, measured for 10 minutes|make demo SIZE=quick
standard|Sys-E's overhead, 120,000 documents, measured for 46 minutes|make demo SIZE=standard
paper|Sys-E's overhead, 1,000,000 documents, measured for 8 hours|make demo SIZE=paper
"

list() {
  echo 'Measurements, started by make bench NAME=... or their commands:'
  local name what command
  while IFS='|' read -r name what command; do
    [[ -z $name ]] || printf '\n  %-12s %s\n  %12s %s\n' "$name" "$what" '' "$command"
  done <<<"$MEASUREMENTS"
}

[[ -n ${1:-} ]] || {
  list
  exit
}
command=$(awk -F '|' -v name="$1" '$1 == name { print $3 }' <<<"$MEASUREMENTS")
[[ -n $command ]] || {
  echo "bench: there is no measurement $1; make bench lists them" >&2
  exit 2
}
echo "$command"
exec bash -euo pipefail -c "$command"
