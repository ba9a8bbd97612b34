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
// # What the chain proves
//
// The hashes are not keyed. Whoever can write the file can also write another file whose chain holds, or cut records
// off its end; neither shows unless the number and hash of a record are kept where they cannot be changed, which is
// what a [Checkpoint] is for.
//
// # Several processes, crashes
//
// Any number of processes may append to one file: FILE.lock, beside it, is locked while one writes. A write that a
// crash cut short leaves a last line without its newline. No caller was ever told that such a record exists. The next
// append moves it to FILE.torn-1 (or the next free number) and the chain goes on; anything else that is wrong with
// what was appended since the process last looked, or with the last record when the log is opened, makes Append
// refuse. Damage further up is for Verify to find, so that opening a log takes the same time however long it is.
package audit
