#include "textflag.h"

// func pause(n int)
TEXT ·pause(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), AX
again:
	PAUSE
	DECQ AX                 // n--
	JG   again              // until it is 0
	RET
