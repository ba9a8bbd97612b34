"""The training sets: questions with the tables they need, and every table as a text."""

import gzip
import json
import os
import zlib

SETS = {"spider_train": "spider", "bird_train": "bird_train", "text2sql_data": "text2sql_data"}


def lines(bench, name):
    path = os.path.join(bench, name)
    with gzip.open(path + ".gz", "rt") if os.path.exists(path + ".gz") else open(path) as f:
        return [json.loads(line) for line in f]


held = 0, 5  # the remainder, and by what is divided


def held_out(db):
    """One database in five is kept for measuring, by its name, so that one in two sets is held out of both."""
    db = {"geography": "geo"}.get(db.lower(), db.lower())
    return zlib.crc32(db.encode()) % held[1] == held[0]


def tables(bench, schema, only=None):
    """{(db, table): text}: the table's name, then its columns' names."""
    out = {}
    for c in lines(bench, schema + ".schema.jsonl"):
        if only is None or c["db"].lower() in only:
            out.setdefault((c["db"].lower(), c["table"].lower()), [c["table"]]).append(c["column"])
    return {k: v[0] + ": " + ", ".join(v[1:]) for k, v in out.items()}


def load(bench):
    """{set: (questions, tables)} of the databases that the set's questions ask about, and no others: the schema file of
    Spider also holds databases of its test set."""
    out = {}
    for name, schema in SETS.items():
        questions = [q for q in lines(bench, name + ".questions.jsonl") if q["gold_tables"]]
        for q in questions:
            q["db"] = q["db"].lower()
        out[name] = questions, tables(bench, schema, {q["db"] for q in questions})
    return out


def training_texts(bench):
    for questions, texts in load(bench).values():
        for q in questions:
            if not held_out(q["db"]):
                yield q["question"]
                if q.get("question_de"):
                    yield q["question_de"]
        for (db, _), text in texts.items():
            if not held_out(db):
                yield text


def columns(bench, name):
    """{(db, table, column): text} of a set's schema file."""
    out = {}
    for c in lines(bench, SETS[name] + ".schema.jsonl"):
        out[c["db"].lower(), c["table"].lower(), c["column"].lower()] = c["table"] + ": " + c["column"]
    return out
