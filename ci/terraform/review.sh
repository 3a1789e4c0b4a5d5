#!/usr/bin/env bash
# A pipeline of your own: writes a root module for each job of the committed plans, plans it with Terraform, and shows both together.  Applies nothing.
#
#   BASE=origin/main ci/terraform/review.sh [JOB...]          default: every job that has a plan
#
# Exits 0 where nothing changes, 2 where there is something to review or the audit finds something, 1 on an error.  A comment is written where a token is set
# (GITHUB_TOKEN or GITLAB_TOKEN) and the pipeline is of a pull request.  Needs skyplan and terraform on PATH, and credentials that may read the state.
#
# With a `backend` in skyplan.yaml: BACKEND_CONFIG=FILE holds what all states share (bucket, region), and each job's state is STATE_PREFIX/job-NAME.tfstate,
# given as the backend's argument STATE_NAME (default: key, which s3 and azurerm take; gcs: prefix).
set -euo pipefail

base=${BASE:?the revision to compare with, such as origin/main}
plans=${PLANS:-plans}
out=${OUT:-.skyplan/review}
terraform=${SKYPLAN_TERRAFORM:-terraform}

# to files that their user alone reads, never to the log: Terraform writes secret values in clear
umask 077
rm -rf "$out"
mkdir -p "$out"
skyplan synth --plans "$plans" --format hcl --root --out "$out/terraform" >/dev/null

if [ "$#" -eq 0 ]; then
  shopt -s nullglob
  for folder in "$out"/terraform/job-*/; do
    name=$(basename "$folder")
    set -- "$@" "${name#job-}"
  done
fi

found=()
for job in "$@"; do
  folder=$out/terraform/job-$job
  init=(-input=false -no-color)
  if [ -n "${BACKEND_CONFIG:-}" ]; then
    init+=(-backend-config="$(realpath "$BACKEND_CONFIG")" -backend-config="${STATE_NAME:-key}=${STATE_PREFIX:-skyplan}/job-$job.tfstate")
  fi
  "$terraform" -chdir="$folder" init "${init[@]}" >"$out/$job.init.log" || { tail -n 40 "$out/$job.init.log" >&2; exit 1; }
  code=0
  "$terraform" -chdir="$folder" plan -input=false -no-color -detailed-exitcode -out=tfplan >"$out/$job.plan.log" || code=$?
  if [ "$code" -ne 0 ] && [ "$code" -ne 2 ]; then
    tail -n 40 "$out/$job.plan.log" >&2
    exit 1
  fi
  "$terraform" -chdir="$folder" show -json tfplan >"$out/$job.json"
  found+=(--terraform-plan "$out/$job.json")
done

diff=0
skyplan diff --base "$base" --plans "$plans" ${found[@]+"${found[@]}"} --tag "${TAG:-skyplan}" --detailed-exitcode \
  --format markdown --output "$out/diff.md" --format json --output "$out/diff.json" --format table --output - || diff=$?
if [ "$diff" -ne 0 ] && [ "$diff" -ne 2 ]; then exit 1; fi

audit=0
skyplan audit --plans "$plans" --base "$base" --fail-on "${FAIL_ON:-high}" \
  --format markdown --output "$out/audit.md" --format sarif --output "$out/skyplan.sarif" || audit=$?
if [ "$audit" -ne 0 ] && [ "$audit" -ne 2 ]; then exit 1; fi

if [ -n "${GITHUB_TOKEN:-}${GITLAB_TOKEN:-}" ]; then
  skyplan comment "$out/diff.md"
  skyplan comment "$out/audit.md" --tag "${TAG:-skyplan}" --only-on-change
fi

if [ "$diff" -eq 2 ] || [ "$audit" -eq 2 ]; then exit 2; fi
