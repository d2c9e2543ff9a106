#!/bin/sh
# Runs a program as a rank of a job, and says which rank it was if the program is killed, which mpiexec doesn't:
#
#	mpiexec -f hosts -ppn 1 rank.sh ./train -dir /shared/run1
#
# Mpiexec sends its signals to the program, too. The script goes on, and then ends as the program has.
trap : TERM INT USR1

# The program looks for the library of MPI beside the process that has started it, which is this script now.
lib=$(readlink "/proc/$PPID/exe")
lib=${lib%/*/*}/lib/libmpi_abi.so.1
[ -n "${ASYNCGEN_LIBMPI:-}" ] || ! [ -f "$lib" ] || export ASYNCGEN_LIBMPI="$lib"

"$@"
code=$?
if [ "$code" -gt 128 ]; then
	signal=$((code - 128))
	echo "rank.sh: rank ${PMI_RANK:-?} of ${PMI_SIZE:-?}, on $(uname -n), was killed by signal $signal" >&2
	trap - TERM INT USR1
	kill -"$signal" $$ # mpiexec ends the other ranks because of a signal, and not always because of an exit code
fi
exit "$code"
