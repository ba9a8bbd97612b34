#include "textflag.h"

// A block of 32 bytes is multiplied at once. Two products of a byte and a rough number, 2*255*31 at most, make a word
// of 16 bits; two such words are then added to each of eight sums.

// func multiplyBlocks(sums *int32, words *uint64, rough *int8, n, blocks int)
TEXT ·multiplyBlocks(SB), NOSPLIT, $0-40
	MOVQ sums+0(FP), DI
	MOVQ words+8(FP), SI
	MOVQ rough+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ blocks+32(FP), BX
	VPCMPEQW Y3, Y3, Y3
	VPSRLW   $15, Y3, Y3 // ones

vector:
	VPXOR Y0, Y0, Y0
	MOVQ  DX, R8
	MOVQ  BX, R9

block:
	VMOVDQU    (SI), Y1
	VPMADDUBSW (R8), Y1, Y1
	VPMADDWD   Y3, Y1, Y1
	VPADDD     Y1, Y0, Y0
	ADDQ       $32, SI
	ADDQ       $32, R8
	DECQ       R9
	JNZ        block

	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, (DI)
	ADDQ         $4, DI
	DECQ         CX
	JNZ          vector
	VZEROUPPER
	RET
