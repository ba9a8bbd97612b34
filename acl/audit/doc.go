// Package audit is the record of what Schemagate decided: who asked what, what they got, what was withheld and why.
// Nothing is answered before its record is on disk.
//
// # The file
//
// A log is one file of JSON records, one a line, each ended by a newline. Records are numbered from 1 without gaps and
// each names the hash of the one before it, so that a record that is changed, removed, inserted or moved breaks the
// chain at a place that [Verify] can name.
//
// A record's hash is the SHA-256, in lower-case hex, of its line as it stands in the file, without the newline and
// without its last member: the bytes between ,"hash":" and the closing brace are cut out together with that member's
// name. Nothing has to be normalised to check it. The first record has the empty string as prev.
//
// Text may hold any bytes. A member whose text is not valid UTF-8 is written in base64 (every element of it, for a
// list) and named in the member base64.
//
// # Checkpoints and proofs
//
// The hashes are not keyed. Whoever can write the file can also write another file whose chain holds, or cut records
// off its end; neither shows in the file alone. So the records' hashes are also the leaves of a Merkle tree as in
// RFC 6962, each as its 32 bytes, and [Sign] signs a [Checkpoint] of its size and root with an Ed25519 [Key], in the form
// of C2SP's signed notes. A checkpoint that is kept where the log's writers cannot reach shows a cut or rewritten log,
// and a [Proof] shows somebody who has no log that a record is among those that a checkpoint stands for, or that one
// checkpoint continues another.
//
// The tree's hashes are kept in FILE.tree, in the order of golang.org/x/mod/sumdb/tlog after a header of 32 bytes. They
// are written when a checkpoint is signed or a proof made, not when a record is appended, so an append waits for its own
// line and nothing else. The file may lag behind the log, be cut short by a crash, or be removed: what is missing is
// built from the log. Where it is there, Verify compares it too, which tells at which record a rewritten log begins to be
// another one. The last checkpoint is kept in FILE.checkpoint, and the next is signed only if the log still begins with it.
//
// # Retention
//
// [Retain] removes the content of old records. What is left of one is its number, ID, time and prev, and as removed the
// hash that it had, which is what the next record's prev and the tree go on to hold; its own hash covers what is left.
// The last record of a retention names how many records are without content and the hash of their lines, so that content
// which somebody else removed is a fault, and so is a time that somebody changed afterwards.
//
// # Several processes, crashes
//
// Any number of processes may append to one file: FILE.lock, beside it, is locked while one writes. A write that a
// crash cut short leaves a last line without its newline. No caller was ever told that such a record exists. The next
// append moves it to FILE.torn-1 (or the next free number) and the chain goes on; anything else that is wrong with
// what was appended since the process last looked, or with the last record when the log is opened, makes Append
// refuse. Damage further up is for Verify to find, so that opening a log takes the same time however long it is.
//
// A retention writes FILE.retaining and puts it in the log's place, which a crash does not leave half done; processes that
// had the log open find their place in it again.
package audit
