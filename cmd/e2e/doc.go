// Package e2e holds the tests from end to end: it builds the command and the example programs as users do, runs them,
// and looks at what comes out. It has no code of its own.
//
//	programs_test.go  every program, as written and rewritten, prints its golden file on every device, in every mode
//	waits_test.go     where a program waits when it runs, the linter has a finding
//	reads_test.go     each read in a loop of the programs is rewritten, or a remark says why not
//	fixes_test.go     what vet -fix makes of a module builds, and does what it did
//	recipes_test.go   the settings for editors, hooks and workflows in testdata/recipes
//	faults_test.go    programs whose devices fail end with an error that says what failed and where
//	failures_test.go  random programs: which statements see which failures
//	launchers_test.go the scripts in testdata/recipes that start jobs of several machines
//	machines_linux_test.go  a job of several ranks, also when ranks are killed, stuck or told to stop, has the same bits
//	dying_linux_test.go     a rank is killed at a message of such a job, or each rank at each
//	built_test.go     builds what the others run, once
//
// The tests run in the module's root folder, and name files from there.
package e2e
