"""Texts and the vectors that the model file gives them, for the Go tests: reference.py MODEL.bin OUT.json"""

import json
import struct
import sys

import numpy as np

import measure
from words import Pieces

TEXTS = [
    "How many heads of the departments are older than 56 ?",
    "Wie viele Abteilungsleiter/innen sind älter als 56?",
    "列出没有任何付款记录的客户数量。",
    "東京の売上とサーバー",
    "сколько клиентов в Москве",
    "amt_net_rev",
    "custID2 OrderIDs HTTPServerName XMLs",
    "orders: order_id, customer_id, OrderDate, ship_to_addr, total$usd",
    "STRASSE straße Übergröße ÄRZTE",
    "ﬁnance Ⅷ ² ½ １２３ e\u0301tat",
    "warehouse quarterly churn headcount",
    "zzqxv ꙮꙮ 𓀀 mixed",
    "Σίσυφος ΟΔΟΣ İstanbul",
    "don't 3.14 a1b2c3 foo--bar",
]


def read(path):
    with open(path, "rb") as f:
        _, n, dim, size = struct.unpack("<4sIII", f.read(16))
        scores, scales = np.frombuffer(f.read(4 * n), "<f4"), np.frombuffer(f.read(4 * n), "<f4")
        lengths, text = f.read(n), f.read(size)
        rows = np.frombuffer(f.read(), np.int8).reshape(n, dim)
    ends = np.cumsum(list(lengths))
    pieces = [text[e - k : e].decode() for e, k in zip(ends, lengths)]
    return Pieces(pieces, scores.tolist()), rows * scales[:, None]


def main(model, out):
    cut, vectors = read(model)
    with open(out, "w", encoding="utf-8") as f:
        json.dump([{"text": t, "pieces": cut.ids(t), "vector": [round(float(x), 5) for x in measure.embed(cut, vectors, [t])[0]]} for t in TEXTS],
                  f, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main(*sys.argv[1:])
