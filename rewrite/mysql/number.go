package mysql

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

// number bounds the value of an expression, so that arithmetic which cannot leave its range is known not to fail. The
// zero number is a value that nothing is known of.
type number struct {
	bits     int  // of its digits, without point and sign; 0 if there is no bound
	decimal  bool // an exact number with a fraction, else a whole one
	scale    int  // how many decimal digits of it stand behind the point, at most
	unsigned bool // a difference below zero is an error
}

// The bits that surely fit into a BIGINT, and into the 65 digits of a DECIMAL.
const (
	wholeBits   = 62
	decimalBits = 215
)

// ofDigits returns the bits that a number of so many decimal digits needs.
func ofDigits(digits int) int { return digits*10/3 + 1 }

func (n number) bounded() bool {
	return n.bits > 0 && (n.bits <= wholeBits || n.decimal && n.bits <= decimalBits)
}

// typed bounds a column by its type.
func typed(columnType string) number {
	name := strings.ToLower(columnType)
	n := number{unsigned: strings.Contains(name, "unsigned") || strings.Contains(name, "zerofill")}
	end := strings.IndexAny(name, "( ")
	if end < 0 {
		end = len(name)
	}
	switch name[:end] {
	case "tinyint", "bool", "boolean":
		n.bits = 8
	case "smallint":
		n.bits = 16
	case "mediumint":
		n.bits = 24
	case "int", "integer":
		n.bits = 32
	case "bigint":
		n.bits = 64
	case "year":
		n.bits = 12
	case "decimal", "numeric", "dec", "fixed":
		n.bits, n.decimal = ofDigits(10), true
		if end < len(name) && name[end] == '(' {
			inside, _, _ := strings.Cut(name[end+1:], ")")
			length, scale, scaled := strings.Cut(inside, ",")
			d, err := strconv.Atoi(strings.TrimSpace(length))
			if err != nil {
				return number{}
			}
			n.bits = ofDigits(d)
			if scaled {
				if n.scale, err = strconv.Atoi(strings.TrimSpace(scale)); err != nil {
					return number{}
				}
			}
		}
	default:
		return number{}
	}
	if !n.unsigned && !n.decimal {
		n.bits-- // the sign's
	}
	return n
}

func literalNumber(n *test_driver.ValueExpr) number {
	switch n.Kind() {
	case test_driver.KindInt64, test_driver.KindUint64:
		return number{bits: max(bits.Len64(n.GetUint64()), 1)}
	case test_driver.KindMysqlDecimal:
		text := n.GetMysqlDecimal().String()
		_, fraction, _ := strings.Cut(text, ".")
		return number{bits: ofDigits(len(text)), decimal: true, scale: len(fraction)}
	}
	return number{}
}

// either bounds a value that is one of several.
func either(ns ...number) number {
	var out number
	for i, n := range ns {
		if n.bits == 0 {
			return number{}
		}
		if i == 0 {
			out = n
			continue
		}
		out = number{bits: aligned(out, n), decimal: out.decimal || n.decimal, unsigned: out.unsigned || n.unsigned, scale: max(out.scale, n.scale)}
	}
	return out
}

// aligned bounds the digits of either of two numbers once they have as many behind the point.
func aligned(a, b number) int {
	behind := max(a.scale, b.scale)
	return max(a.bits+ofScale(behind-a.scale), b.bits+ofScale(behind-b.scale))
}

// ofScale returns the bits that so many more decimal digits need.
func ofScale(digits int) int {
	if digits <= 0 {
		return 0
	}
	return ofDigits(digits)
}

// divisionScale is how many digits a division adds behind the point.
const divisionScale = 4

// arithmetic bounds l op r and reports whether it could fail.
func arithmetic(op opcode.Op, l, r number) (_ number, fails bool) {
	out := number{decimal: l.decimal || r.decimal, unsigned: l.unsigned || r.unsigned, scale: max(l.scale, r.scale)}
	if !l.bounded() || !r.bounded() {
		return number{}, true
	}
	switch op {
	case opcode.Plus, opcode.Minus:
		out.bits = aligned(l, r) + 1
		if op == opcode.Minus && out.unsigned {
			return number{}, true
		}
	case opcode.Mul:
		out.bits, out.scale = l.bits+r.bits, l.scale+r.scale
	case opcode.Div:
		// The least divisor has all of its digits behind the point.
		out.bits, out.scale, out.decimal = l.bits+ofScale(r.scale)+ofDigits(divisionScale), l.scale+divisionScale, true
	case opcode.IntDiv:
		if out.decimal {
			return number{}, true
		}
		out.bits = l.bits
	case opcode.Mod:
		out.bits = aligned(l, r)
	}
	if !out.bounded() {
		return number{}, true
	}
	return out, false
}

// summed bounds the sum of up to 10^15 values.
func (n number) summed() number {
	if n.bits == 0 {
		return n
	}
	return number{bits: n.bits + 50, decimal: true, scale: n.scale}
}

// averaged bounds the average of so many values.
func (n number) averaged() number {
	if n.bits == 0 {
		return n
	}
	return number{bits: n.bits + 50 + ofDigits(divisionScale), decimal: true, scale: n.scale + divisionScale}
}

// cast bounds a value by the type that it is cast to.
func cast(n *ast.FuncCastExpr) number {
	return typed(strings.ToLower(n.Tp.CompactStr()))
}
