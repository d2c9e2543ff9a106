//go:build (linux || darwin) && !android && !ios && !faketime

#include "textflag.h"

// The fields of a Call, in bytes from its beginning.
#define CALL_FN 0
#define CALL_ARG(i) (8+8*i)
#define CALL_RESULT 104
#define CALL_SIZE 112

// The fields of a crossing.
#define CROSSING_CALLS 0
#define CROSSING_N 8
#define CROSSING_STOP 16
#define CROSSING_DONE 24

GLOBL ·callAll(SB), NOPTR|RODATA, $8
DATA ·callAll(SB)/8, $callAllC(SB)

// callAllC is called by C's conventions, on C's stack, with a crossing in DI. What C expects to find unchanged and is
// used here, BX, R12 and R13, is saved above the six words for arguments that don't fit into registers.
//
// The frame keeps SP a multiple of 16 at each CALL: 8 bytes of the return address, 8 of the saved BP, and 96.
TEXT callAllC(SB), NOSPLIT, $96
	MOVQ BX, 48(SP)
	MOVQ R12, 56(SP)
	MOVQ R13, 64(SP)
	MOVQ DI, R12                   // the crossing
	MOVQ CROSSING_CALLS(R12), R13  // the next call
	MOVQ CROSSING_N(R12), BX       // calls that are left
	MOVQ $0, CROSSING_DONE(R12)

next:
	TESTQ BX, BX
	JZ    done
	MOVQ  CALL_ARG(6)(R13), AX     // arguments 6 to 11 go on the stack
	MOVQ  AX, 0(SP)
	MOVQ  CALL_ARG(7)(R13), AX
	MOVQ  AX, 8(SP)
	MOVQ  CALL_ARG(8)(R13), AX
	MOVQ  AX, 16(SP)
	MOVQ  CALL_ARG(9)(R13), AX
	MOVQ  AX, 24(SP)
	MOVQ  CALL_ARG(10)(R13), AX
	MOVQ  AX, 32(SP)
	MOVQ  CALL_ARG(11)(R13), AX
	MOVQ  AX, 40(SP)
	MOVQ  CALL_ARG(0)(R13), DI     // the first six in registers
	MOVQ  CALL_ARG(1)(R13), SI
	MOVQ  CALL_ARG(2)(R13), DX
	MOVQ  CALL_ARG(3)(R13), CX
	MOVQ  CALL_ARG(4)(R13), R8
	MOVQ  CALL_ARG(5)(R13), R9
	MOVQ  CALL_FN(R13), R10
	XORL  AX, AX                   // no vector registers hold arguments, if it is variadic
	CALL  R10
	MOVQ  AX, CALL_RESULT(R13)
	INCQ  CROSSING_DONE(R12)
	CMPQ  CROSSING_STOP(R12), $0
	JEQ   advance
	TESTL AX, AX                   // a C int: the upper half means nothing
	JNZ   done

advance:
	ADDQ $CALL_SIZE, R13
	DECQ BX
	JMP  next

done:
	MOVQ 48(SP), BX
	MOVQ 56(SP), R12
	MOVQ 64(SP), R13
	XORL AX, AX
	RET
