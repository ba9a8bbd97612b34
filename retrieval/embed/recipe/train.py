"""Makes the model and measures it: train.py BENCH VOCABULARY.npz MODEL.bin [REMAINDER/DIVISOR]

The last says which databases are held out, 0/5 if it is left out.

A text's vector is the sum of its pieces' vectors, of length 1. A piece's vector is the teacher's, projected and weighted,
plus a correction. Projection, weights and corrections are learned from the questions of the training databases: a
question should lie nearer to the tables and columns that its query reads than to any others of its set, and a question's
German wording near to its English one. No set has Chinese questions: in part of the questions each word is exchanged for
a Chinese one that the teacher puts near it. A piece that training never saw follows the pieces that the teacher puts
near it.
"""

import random
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

import data
import measure
from words import Pieces

DIM = 192
STEPS = 200
BATCH = 192  # questions a step
SEED = 1
COMMON = 5e-4  # the probability of a piece that halves its weight
RATES = {"projection": 0.001, "weights": 0.02, "corrections": 0.003, "temperature": 0.01}
DECAY = 0.02  # how strongly corrections are held small
DROPPED = 0.1  # share of pieces left out of a text
GERMAN = 0.4  # share of questions asked in German, of those that can be
EXCHANGED = 0.25  # share of questions asked in exchanged words
NEAR = 8  # pieces that an unseen piece follows


def bags(lists):
    flat = torch.tensor([k for one in lists for k in one], dtype=torch.long)
    starts = np.cumsum([0] + [len(one) for one in lists])[:-1]
    return flat, torch.tensor(starts, dtype=torch.long)


class Set:
    """The training part of a set, as piece ids."""

    def __init__(self, questions, tables, columns, ids):
        self.tables = [ids(t) for t in tables.values()]
        self.columns = [ids(t) for t in columns.values()]
        at = {k: i for i, k in enumerate(tables)}
        col = {k: i for i, k in enumerate(columns)}
        self.questions = []
        for q in questions:
            gold = [at[q["db"], t.lower()] for t in q["gold_tables"] if (q["db"], t.lower()) in at]
            cols = [col[(q["db"], *c.lower().split(".", 1))] for c in q["gold_columns"] if (q["db"], *c.lower().split(".", 1)) in col]
            german = ids(q["question_de"]) if q.get("question_de") else None
            if gold:
                self.questions.append((ids(q["question"]), german, gold, cols))


def toward(logits, gold):
    """The cross-entropy against an even share for each of the gold rows."""
    logp = F.log_softmax(logits, 1)
    return -torch.stack([logp[i, g].mean() for i, g in enumerate(gold) if g]).mean()


def chinese(t, used, pieces):
    """For every word, the Chinese pieces that the teacher puts nearest, those that are near to everything marked down."""
    han = np.array([i for i, p in enumerate(pieces) if "\u3400" <= p[-1] <= "\u9fff"])
    source = np.array([k for k in used if pieces[k].startswith("▁") and len(pieces[k]) > 3])
    near = t[source] @ t[han].T
    near -= np.sort(near, 0)[-10:].mean(0) / 2
    top = np.argpartition(-near, 3, 1)[:, :3]
    return {k: han[row].tolist() for k, row in zip(source.tolist(), top)}


def vectors_of(groups, E):
    return [F.normalize(F.embedding_bag(flat, E, starts, mode="sum"), dim=1, eps=1e-6) for flat, starts in map(bags, groups)]


def train(sets, teacher, scores, pieces):
    rng = random.Random(SEED)
    torch.manual_seed(SEED)
    # The teacher's vectors all share one direction, which says nothing; then the principal directions, evened out.
    t = teacher - teacher.mean(0)
    t /= np.linalg.norm(t, axis=1, keepdims=True)
    used = sorted({k for s in sets.values() for part in (s.tables, s.columns) for one in part for k in one}
                  | {k for s in sets.values() for q in s.questions for k in q[0] + (q[1] or [])})
    translations = chinese(t, used, pieces)
    used = sorted({*used, *(k for ks in translations.values() for k in ks)})
    local = {k: i for i, k in enumerate(used)}
    spread, axes = np.linalg.eigh(t.T @ t / len(t))
    axes, spread = axes[:, ::-1][:, : DIM].copy(), spread[::-1][: DIM].copy()
    start = torch.tensor(axes / spread**0.25, dtype=torch.float32)
    start /= (torch.tensor(t) @ start).norm(dim=1).mean()
    prior = torch.tensor(np.log(COMMON / (COMMON + np.exp(scores))), dtype=torch.float32)

    T, p = torch.tensor(t)[used], prior[used]
    W = start.clone().requires_grad_()
    weight = torch.zeros(len(used), requires_grad=True)
    delta = torch.zeros(len(used), DIM, requires_grad=True)
    temperature = torch.tensor(3.0, requires_grad=True)
    learned = {"projection": W, "weights": weight, "corrections": delta, "temperature": temperature}
    opt = torch.optim.Adam([{"params": [learned[k]], "lr": rate} for k, rate in RATES.items()])
    names, shares = list(sets), [len(s.questions) ** 0.5 for s in sets.values()]

    def thin(one):
        kept = [local[k] for k in one if rng.random() > DROPPED]
        return kept or [local[k] for k in one]

    def exchange(one):
        return [rng.choice(translations[k]) if k in translations and rng.random() < 0.9 else k for k in one]

    for step in range(STEPS):
        for g, lr in zip(opt.param_groups, RATES.values()):
            g["lr"] = lr * min(1, (step + 1) / 50) * (1 - step / STEPS)
        s = sets[rng.choices(names, shares)[0]]
        batch = rng.sample(s.questions, BATCH)
        asked = [q[1] if q[1] and rng.random() < GERMAN else q[0] for q in batch]
        asked = [exchange(x) if rng.random() < EXCHANGED else x for x in asked]
        pairs = [q for q in batch if q[1]]
        E = (T @ W) * torch.exp(p + weight)[:, None] + delta
        q, tab, col = vectors_of([[thin(x) for x in asked], [thin(x) for x in s.tables], [[local[k] for k in x] for x in s.columns]], E)
        scale = temperature.exp()
        loss = toward(scale * q @ tab.T, [x[2] for x in batch]) + 0.5 * toward(scale * q @ col.T, [x[3] for x in batch])
        if pairs:
            en, de = vectors_of([[thin(x[0]) for x in pairs], [thin(x[1]) for x in pairs]], E)
            loss = loss + 0.5 * F.cross_entropy(scale * en @ de.T, torch.arange(len(pairs)))
        loss = loss + DECAY * delta.pow(2).sum(1).mean() + DECAY * weight.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}, temperature {scale.item():.1f}", flush=True)
    with torch.no_grad():
        delta, weight = delta.numpy(), weight.numpy()
        W, start, prior = W.numpy(), start.numpy(), np.exp(prior.numpy())
    return spread_corrections(t, prior, used, W, weight, delta), t @ start * prior[:, None]


def spread_corrections(t, prior, used, W, weight, delta):
    """The final vectors. What training changed about a piece, it passes on to the pieces it did not see, as far as the
    teacher's vectors are near: so other languages' words follow those of English and German."""
    size = prior[used] * np.exp(weight)
    change = delta / size[:, None]  # against a vector of weight 1
    seen = np.zeros(len(t), bool)
    seen[used] = True
    shift, gain = np.zeros((len(t), W.shape[1]), np.float32), np.zeros(len(t), np.float32)
    shift[used], gain[used] = change, weight
    unseen = np.flatnonzero(~seen)
    for i in range(0, len(unseen), 2000):
        part = unseen[i : i + 2000]
        near = t[part] @ t[used].T
        top = np.argpartition(-near, NEAR, 1)[:, : NEAR]
        near = np.take_along_axis(near, top, 1)
        share = np.exp((near - near.max(1, keepdims=True)) / 0.05)
        share /= share.sum(1, keepdims=True)
        sure = np.clip(near.max(1), 0, 1)[:, None]
        shift[part] = sure * np.einsum("nk,nkd->nd", share, change[top])
        gain[part] = (share * weight[top]).sum(1)
    return (t @ W + shift) * (prior * np.exp(gain))[:, None]


def write(path, pieces, scores, vectors):
    scale = np.abs(vectors).max(1) / 127 + 1e-12
    rows = np.rint(vectors / scale[:, None]).astype(np.int8)
    text = [p.encode() for p in pieces]
    with open(path, "wb") as f:
        f.write(struct.pack("<4sIII", b"SGE1", len(pieces), vectors.shape[1], sum(map(len, text))))
        f.write(scores.astype("<f4").tobytes() + scale.astype("<f4").tobytes())
        f.write(bytes(map(len, text)) + b"".join(text) + rows.tobytes())
    return rows * scale.astype(np.float32)[:, None]


def main(bench, vocabulary, model, held="0/5"):
    data.held = tuple(map(int, held.split("/")))
    torch.set_num_threads(1)  # and so the same sums in the same order

    v = np.load(vocabulary)
    pieces, scores, teacher = v["pieces"].tolist(), v["scores"], v["vectors"]
    cut = Pieces(pieces, scores.tolist())
    loaded = data.load(bench)
    sets = {}
    for name, (questions, tables) in loaded.items():
        sets[name] = Set([q for q in questions if not data.held_out(q["db"])],
                         {k: t for k, t in tables.items() if not data.held_out(k[0])},
                         {k: t for k, t in data.columns(bench, name).items() if k[:2] in tables and not data.held_out(k[0])}, cut.ids)
        print(name, len(sets[name].questions), "questions,", len(sets[name].tables), "tables to train on")
    tuned, untuned = train(sets, teacher, scores, pieces)
    measure.report("before tuning", loaded, cut, untuned)
    measure.report("tuned", loaded, cut, write(model, pieces, scores, tuned))


if __name__ == "__main__":
    main(*sys.argv[1:])
