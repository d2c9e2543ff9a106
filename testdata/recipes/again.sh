#!/usr/bin/env bash
# Runs a job of several machines, and runs it again when it has failed, from its last checkpoint:
#
#	again.sh mpiexec -f hosts -ppn 1 rank.sh ./train -dir /shared/run1
#
# The program has to go on by itself, as files.Checkpoints.Resume does. A job that fails within a minute of its start,
# five times in a row, is given up: AGAIN_QUICK (seconds) and AGAIN_TRIES. In between are AGAIN_PAUSE seconds, by default
# 5, in which mpiexec's last ranks come to their end.
#
# SIGTERM, SIGINT and SIGUSR1 have the job stop at its next step, and it is not run again. The exit code is that of the
# last run.
set -u
quick=${AGAIN_QUICK:-60} tries=${AGAIN_TRIES:-5} pause=${AGAIN_PAUSE:-5}
if (($# == 0)); then
	echo 'usage: again.sh COMMAND [ARGUMENT...]' >&2
	exit 2
fi

job='' stopped='' interrupted='' signal=''
stop() {
	stopped=1 interrupted=1 signal=$1
	[[ -z $job ]] || pass
}
pass() {
	kill -s "$signal" "$job"
	signal=''
}
trap 'stop TERM' TERM INT
trap 'stop USR1' USR1

failed=0
while :; do
	began=$SECONDS
	"$@" &
	job=$!
	[[ -z $signal ]] || pass # it came before job was set
	while
		interrupted=''
		wait "$job"
		code=$?
		[[ -n $interrupted ]] # wait has returned because of a signal
	do :; done
	job=''
	if ((code == 0)) || [[ -n $stopped ]]; then
		exit "$code"
	fi
	((SECONDS - began < quick)) && ((failed += 1)) || failed=0
	if ((failed >= tries)); then
		echo "again.sh: failed $failed times in a row within $quick s, last with exit code $code" >&2
		exit "$code"
	fi
	echo "again.sh: exit code $code, again in $pause s" >&2
	sleep "$pause"
	[[ -z $stopped ]] || exit "$code"
done
