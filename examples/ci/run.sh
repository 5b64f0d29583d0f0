#!/bin/sh
# A devnet for one test run; if the run fails, a report is kept.
set -eu

# Commands use this devnet even if others run on this machine.
export COWBOYCTL_DEVNET=ci
cowboyctl devnet up --detach --name ci --wait 3 --timeout 2m
finish() {
    status=$?
    if [ "$status" -ne 0 ]; then
        cowboyctl devnet report || cowboyctl devnet logs > devnet.log
        cowboyctl devnet report --html || true
    fi
    cowboyctl devnet down
    exit "$status"
}
trap finish EXIT

# The test run: a failing command fails the job.
cowboyctl actor test examples/actors/counter.star
counter=$(cowboyctl --quiet actor deploy examples/actors/counter.star)
cowboyctl --quiet actor call "$counter" increment '{"by": 2}'
job=$(cowboyctl --quiet job submit custom --wait -- echo done)
test "$(cowboyctl job result "$job")" = done
