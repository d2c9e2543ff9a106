#include "textflag.h"

// func framePCs(pcs *[8]uintptr, skip int) int
//
// BP is the caller's frame pointer: it points to where the caller has saved its
// own caller's, and the return address is above that.
TEXT ·framePCs(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ pcs+0(FP), DI
	MOVQ skip+8(FP), DX
	MOVQ BP, SI
	XORL CX, CX             // n = 0
next:
	TESTQ SI, SI            // no frame above: done
	JZ   done
	MOVQ 8(SI), AX          // the return address
	MOVQ 0(SI), SI          // the frame above
	TESTQ DX, DX            // if skip > 0 { skip--; continue }
	JZ   take
	DECQ DX
	JMP  next
take:
	MOVQ AX, (DI)(CX*8)     // pcs[n] = pc
	INCQ CX                 // n++
	CMPQ CX, $8             // until pcs is full
	JLT  next
done:
	MOVQ CX, ret+16(FP)
	RET

// func goroutine() uintptr
TEXT ·goroutine(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ (TLS), AX          // the runtime's record of the goroutine
	MOVQ AX, ret+0(FP)
	RET

// func word(at uintptr) uintptr
TEXT ·word(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ at+0(FP), AX
	MOVQ (AX), AX
	MOVQ AX, ret+8(FP)
	RET

// func pause(n int)
TEXT ·pause(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ n+0(FP), AX
again:
	PAUSE
	DECQ AX
	JG   again
	RET
