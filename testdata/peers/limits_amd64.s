#include "textflag.h"

// func multiplyAdds512(rounds int)
TEXT ·multiplyAdds512(SB), NOSPLIT, $0-8
	MOVQ rounds+0(FP), AX
	VPXOR X0, X0, X0
	VPXOR X1, X1, X1
	VPXOR X2, X2, X2
	VPXOR X3, X3, X3
	VPXOR X4, X4, X4
	VPXOR X5, X5, X5
	VPXOR X6, X6, X6
	VPXOR X7, X7, X7
	VPXOR X8, X8, X8
	VPXOR X9, X9, X9
	VPXOR X10, X10, X10
	VPXOR X11, X11, X11
	VPXOR X12, X12, X12
	VPXOR X13, X13, X13
loop:
	VFMADD231PS Z12, Z13, Z0      // sum[0] += x * y
	VFMADD231PS Z12, Z13, Z1      // sum[1] += x * y
	VFMADD231PS Z12, Z13, Z2      // sum[2] += x * y
	VFMADD231PS Z12, Z13, Z3      // sum[3] += x * y
	VFMADD231PS Z12, Z13, Z4      // sum[4] += x * y
	VFMADD231PS Z12, Z13, Z5      // sum[5] += x * y
	VFMADD231PS Z12, Z13, Z6      // sum[6] += x * y
	VFMADD231PS Z12, Z13, Z7      // sum[7] += x * y
	VFMADD231PS Z12, Z13, Z8      // sum[8] += x * y
	VFMADD231PS Z12, Z13, Z9      // sum[9] += x * y
	VFMADD231PS Z12, Z13, Z10      // sum[10] += x * y
	VFMADD231PS Z12, Z13, Z11      // sum[11] += x * y
	DECQ AX                       // rounds--
	JG   loop
	VZEROUPPER
	RET

// func multiplyAdds256(rounds int)
TEXT ·multiplyAdds256(SB), NOSPLIT, $0-8
	MOVQ rounds+0(FP), AX
	VPXOR X0, X0, X0
	VPXOR X1, X1, X1
	VPXOR X2, X2, X2
	VPXOR X3, X3, X3
	VPXOR X4, X4, X4
	VPXOR X5, X5, X5
	VPXOR X6, X6, X6
	VPXOR X7, X7, X7
	VPXOR X8, X8, X8
	VPXOR X9, X9, X9
	VPXOR X10, X10, X10
	VPXOR X11, X11, X11
	VPXOR X12, X12, X12
	VPXOR X13, X13, X13
loop:
	VFMADD231PS Y12, Y13, Y0      // sum[0] += x * y
	VFMADD231PS Y12, Y13, Y1      // sum[1] += x * y
	VFMADD231PS Y12, Y13, Y2      // sum[2] += x * y
	VFMADD231PS Y12, Y13, Y3      // sum[3] += x * y
	VFMADD231PS Y12, Y13, Y4      // sum[4] += x * y
	VFMADD231PS Y12, Y13, Y5      // sum[5] += x * y
	VFMADD231PS Y12, Y13, Y6      // sum[6] += x * y
	VFMADD231PS Y12, Y13, Y7      // sum[7] += x * y
	VFMADD231PS Y12, Y13, Y8      // sum[8] += x * y
	VFMADD231PS Y12, Y13, Y9      // sum[9] += x * y
	VFMADD231PS Y12, Y13, Y10      // sum[10] += x * y
	VFMADD231PS Y12, Y13, Y11      // sum[11] += x * y
	DECQ AX                       // rounds--
	JG   loop
	VZEROUPPER
	RET

DATA three<>+0(SB)/4, $3.0
GLOBL three<>(SB), RODATA|NOPTR, $4

// func triad(x, y, z *float32, n int)
TEXT ·triad(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), DI
	MOVQ y+8(FP), SI
	MOVQ z+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSS three<>(SB), Y15
loop:
	VMOVUPS 0(DX), Y0
	VMOVUPS 32(DX), Y1
	VFMADD213PS 0(SI), Y15, Y0    // z*3 + y
	VFMADD213PS 32(SI), Y15, Y1
	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $64, DI
	ADDQ $64, SI
	ADDQ $64, DX
	SUBQ $16, CX                  // n -= 16
	JG   loop
	VZEROUPPER
	RET

// func triadPast(x, y, z *float32, n int)
TEXT ·triadPast(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), DI
	MOVQ y+8(FP), SI
	MOVQ z+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSS three<>(SB), Y15
loop:
	VMOVUPS 0(DX), Y0
	VMOVUPS 32(DX), Y1
	VFMADD213PS 0(SI), Y15, Y0    // z*3 + y
	VFMADD213PS 32(SI), Y15, Y1
	VMOVNTPS Y0, 0(DI)
	VMOVNTPS Y1, 32(DI)
	ADDQ $64, DI
	ADDQ $64, SI
	ADDQ $64, DX
	SUBQ $16, CX                  // n -= 16
	JG   loop
	SFENCE
	VZEROUPPER
	RET
