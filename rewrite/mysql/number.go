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
	unsigned bool // a difference below zero is an error
}

// The bits that surely fit: into a BIGINT, and of the 65 digits of a DECIMAL into 60.
const (
	wholeBits   = 62
	decimalBits = 199
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
			length, _, _ := strings.Cut(strings.TrimSuffix(name[end+1:], ")"), ",")
			length, _, _ = strings.Cut(length, ")")
			d, err := strconv.Atoi(strings.TrimSpace(length))
			if err != nil {
				return number{}
			}
			n.bits = ofDigits(d)
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
		return number{bits: ofDigits(len(n.GetMysqlDecimal().String())), decimal: true}
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
		if i > 0 && (n.decimal != out.decimal) {
			// The digits before and behind the point add up.
			n.bits += out.bits
		}
		out = number{bits: max(out.bits, n.bits), decimal: out.decimal || n.decimal, unsigned: out.unsigned || n.unsigned}
	}
	return out
}

// arithmetic bounds l op r and reports whether it could fail.
func arithmetic(op opcode.Op, l, r number) (_ number, fails bool) {
	out := number{decimal: l.decimal || r.decimal, unsigned: l.unsigned || r.unsigned}
	if !l.bounded() || !r.bounded() {
		return number{}, true
	}
	switch op {
	case opcode.Plus, opcode.Minus:
		out.bits = max(l.bits, r.bits) + 1
		if out.decimal {
			out.bits = l.bits + r.bits + 1
		}
		if op == opcode.Minus && out.unsigned {
			return number{}, true
		}
	case opcode.Mul:
		out.bits = l.bits + r.bits
	case opcode.Div:
		out.bits, out.decimal = l.bits+r.bits+ofDigits(4), true
	case opcode.IntDiv:
		if out.decimal {
			return number{}, true
		}
		out.bits = l.bits
	case opcode.Mod:
		out.bits = max(l.bits, r.bits)
		if out.decimal {
			out.bits = l.bits + r.bits
		}
	}
	if !out.bounded() {
		return number{}, true
	}
	return out, false
}

// summed bounds the sum of up to 10^15 values, and their average.
func (n number) summed() number {
	if n.bits == 0 {
		return n
	}
	return number{bits: n.bits + 50, decimal: true}
}

// cast bounds a value by the type that it is cast to.
func cast(n *ast.FuncCastExpr) number {
	return typed(strings.ToLower(n.Tp.CompactStr()))
}
