#!/bin/sh
# What README.md and docs/training.md tell a user to type works: every command
# block runs, in order, in an empty folder.
. tests/tap.sh
. tests/tools/blocks.sh

run_blocks README '```sh' README.md
run_blocks training '```sh' docs/training.md
plan_done
