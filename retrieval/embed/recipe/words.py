"""How a text becomes words and pieces. The Go package does the same; its tests hold the two together."""

import re
import unicodedata

LONGEST = 24  # characters of the longest piece
RUN = re.compile(r"[^\W\d_]+|\d+")


def words(text):
    """Splits text at everything that is neither letter nor digit, where a capital follows a small letter, before the last of
    several capitals that a small letter follows, and between letters and digits; lower-cased."""
    out = []
    for run in RUN.findall(unicodedata.normalize("NFKC", text)):
        start = 0
        for i in range(1, len(run)):
            prev, here = run[i - 1], run[i]
            after = run[i + 1] if i + 1 < len(run) else ""
            if here.isupper() and (prev.islower() or prev.isupper() and after.islower() and run[i + 1 :] != "s"):
                out.append(lower(run[start:i]))
                start = i
        out.append(lower(run[start:]))
    return out


def lower(word):
    return "".join(c.lower()[0] for c in word)  # one for one, as Go does


class Pieces:
    """Cuts words into known pieces, so that the sum of the pieces' log-probabilities is greatest. A piece that starts
    a word has a ▁ before it. A character that no piece covers is passed over, at a price."""

    UNKNOWN = -30.0

    def __init__(self, pieces, scores):
        self.id = {p: i for i, p in enumerate(pieces)}
        self.score = scores

    def cut(self, word):
        n = len(word)
        best = [0.0] + [float("-inf")] * n
        back = [None] * (n + 1)
        for end in range(1, n + 1):
            for start in range(max(0, end - LONGEST), end):
                part = word[start:end]
                ids = (self.id.get("▁" + part), self.id.get(part)) if start == 0 else (self.id.get(part),)
                for k in ids:
                    if k is not None and best[start] + self.score[k] > best[end]:
                        best[end], back[end] = best[start] + self.score[k], (start, k)
            if best[end - 1] + self.UNKNOWN > best[end]:
                best[end], back[end] = best[end - 1] + self.UNKNOWN, (end - 1, -1)
        out, end = [], n
        while end > 0:
            start, k = back[end]
            if k >= 0:
                out.append(k)
            end = start
        return out[::-1]

    def ids(self, text):
        return [k for w in words(text) for k in self.cut(w)]
