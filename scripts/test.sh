#!/bin/bash
# Run every test in three parts: on all processors those that time nothing; three at a time those on hosts of the
# lab, of ranks that fail and others that mostly wait; then, one after the other, the others that time processes.
# Arguments go to pytest, each time. A failure of one part does not stop the next, and decides the exit code. Called by
# `make test`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
trap 'exit 130' INT
readonly BAD_USAGE=4 NO_TESTS=5

part() {
    .venv/bin/python -m pytest --timed "$@"
}

# Whether a part has any test: the last line shall be a summary of tests that ran.
has_tests() {
    (($# == 1)) && return
    part "$@" -n 0 --collect-only -qq >/dev/null 2>&1
    (($? != NO_TESTS))
}

part no -n auto --maxprocesses 8 --dist worksteal "$@"
code=$?
((code == BAD_USAGE)) && exit "$code"
if has_tests waiting "$@"; then
    part waiting -n 3 --dist load --maxschedchunk 1 "$@"
    next=$?
    ((code == 0 || code == NO_TESTS)) && code=$next
fi
if has_tests only "$@"; then
    part only "$@" -n 0
    next=$?
    ((code == 0 || code == NO_TESTS)) && code=$next
fi
exit "$code"
