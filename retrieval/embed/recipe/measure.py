"""Recall of gold tables by cosine, over the databases that training never saw, each against all tables of its set."""

import os

import numpy as np

import data


def embed(cut, vectors, texts):
    out = np.zeros((len(texts), vectors.shape[1]), np.float32)
    for i, t in enumerate(texts):
        ids = cut.ids(t)
        if ids:
            v = vectors[ids].sum(0)
            out[i] = v / (np.linalg.norm(v) or 1)
    return out


def recall(cut, vectors, questions, tables, field, at=(5, 20)):
    tables = dict(sorted(tables.items(), key=lambda t: ".".join(t[0])))
    keys = {k: i for i, k in enumerate(tables)}
    asked = [q for q in questions if q.get(field)]
    near = embed(cut, vectors, [q[field] for q in asked]) @ embed(cut, vectors, list(tables.values())).T
    order = np.argsort(-near.round(5), 1, kind="stable")[:, : max(at)]  # equal tables come by name
    got = {k: [] for k in at}
    for q, top in zip(asked, order):
        gold = {keys[q["db"], t.lower()] for t in q["gold_tables"] if (q["db"], t.lower()) in keys}
        if gold:
            for k in at:
                got[k].append(len(gold & set(top[:k].tolist())) / len(gold))
    return len(got[at[0]]), [100 * float(np.mean(got[k])) for k in at]


def chinese(questions):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chinese.tsv")
    with open(path, encoding="utf-8") as f:
        said = dict(line.rstrip("\n").split("\t") for line in f)
    return [{**q, "question_zh": said[q["id"]]} for q in questions if q["id"] in said]


def report(title, loaded, cut, vectors):
    spider, bird = loaded["spider_train"], loaded["bird_train"]
    kept = [q for q in spider[0] if data.held_out(q["db"])]
    for name, questions, tables, field in [
        ("spider_train, English", kept, spider[1], "question"),
        ("spider_train, German", kept, spider[1], "question_de"),
        ("spider_train, 40 in Chinese", chinese(kept), spider[1], "question_zh"),
        ("the same 40 in English", chinese(kept), spider[1], "question"),
        ("bird_train", [q for q in bird[0] if data.held_out(q["db"])], bird[1], "question"),
    ]:
        n, (r5, r20) = recall(cut, vectors, questions, tables, field)
        print(f"{title}: {name}: {n} questions, {len(tables)} tables: R@5 {r5:.1f}, R@20 {r20:.1f}")
