// llhttp_oracle.js < RECORDS: what fuzz_llhttp writes with LLHTTP_RECORDS, read again by the llhttp inside this
// Node, which is another release than the one linked into the target.
//
// A record: u8 side and method, u32le bytes of the wire, u32le bytes of our text, u32le messages, wire, text.
// The text is described in llhttp_reading.h. Ends with a line of counts, and status 1 after a difference.
'use strict';

process.removeAllListeners('warning');
process.on('warning', () => {}); // process.binding is deprecated; there is no other door to the parser
const { HTTPParser, methods } = process.binding('http_parser');

const HEADERS = HTTPParser.kOnHeaders | 0;
const HEADERS_COMPLETE = HTTPParser.kOnHeadersComplete | 0;
const BODY = HTTPParser.kOnBody | 0;
const MESSAGE_COMPLETE = HTTPParser.kOnMessageComplete | 0;
const RECORD_HEAD = 13;
const ANSWERS_HEAD = 1;
const ANSWERS_CONNECT = 2;

const OLD = Number(process.versions.llhttp.split('.')[0]) < 8; // Node 18

const counts = { compared: 0, agreed: 0, messages: 0 };

function withoutBody(answers, status) {
  return answers === ANSWERS_HEAD || status < 200 || status === 204 || status === 304;
}

// The text and number of the complete messages, and whether the bytes were refused.
function read(response, answers, wire) {
  const parser = new HTTPParser();
  let done = '';
  let n = 0;
  let text = '';
  let body = 0;
  let early = []; // fields that came before the head was complete: there were many
  let target = '';
  let inBody = false;
  let upgraded = false;
  let closes = false;
  parser.initialize(response ? HTTPParser.RESPONSE : HTTPParser.REQUEST, {}, 1 << 30, 0);
  parser[HEADERS] = (fields, url) => {
    if (inBody) return; // trailers
    early = early.concat(fields);
    target += url;
  };
  parser[HEADERS_COMPLETE] = (major, minor, fields, method, url, status, reason, upgrade, keepAlive) => {
    const all = early.concat(fields || []);
    upgraded = upgrade;
    closes = !keepAlive;
    text = response ? `${status}\n` : `${methods[method]} ${target + (url || '')}\n`;
    for (let i = 0; i < all.length; i += 2) text += `${all[i]}:${all[i + 1].replace(/^[ \t]+|[ \t]+$/g, '')}\n`;
    text += '\n';
    inBody = true;
    if (!response) return 0;
    if (answers === ANSWERS_CONNECT && status >= 200 && status < 300) return 2;
    return withoutBody(answers, status) ? 1 : 0;
  };
  parser[BODY] = (data) => {
    body += data.length;
    text += data.latin1Slice(0, data.length);
  };
  parser[MESSAGE_COMPLETE] = () => {
    done += `${text}\n${body}\n`;
    n++;
    text = '';
    target = '';
    early = [];
    body = 0;
    inBody = false;
  };
  const rc = parser.execute(wire, 0, wire.length);
  // A parser that was told of a switch stops there, and the older one drops in silence what follows a message that
  // closes, or whose trailer says Transfer-Encoding: nothing is said about the rest.
  let refused = rc instanceof Error || (upgraded && rc < wire.length) || (n > 0 && !inBody && (closes || OLD));
  if (!refused) refused = parser.finish() instanceof Error;
  parser.close();
  return { done, n, refused };
}

function compare(first, wire, text, messages) {
  const theirs = read((first & 1) === 1, (first >> 1) & 3, wire);
  counts.compared++;
  counts.messages += theirs.n;
  if (!theirs.refused) counts.agreed++;
  const ours = text.latin1Slice(0, text.length);
  if (theirs.n <= messages && (theirs.refused ? ours.startsWith(theirs.done) : ours === theirs.done)) return;
  console.log(`difference at ${JSON.stringify(wire.latin1Slice(0, wire.length))} (first byte ${first}):`);
  console.log(`ours, ${messages} messages: ${JSON.stringify(ours)}`);
  console.log(`llhttp, ${theirs.n} messages${theirs.refused ? ', then refused' : ''}: ${JSON.stringify(theirs.done)}`);
  process.exit(1);
}

let pending = Buffer.alloc(0);
process.stdin.on('data', (data) => {
  pending = pending.length > 0 ? Buffer.concat([pending, data]) : data;
  let at = 0;
  while (pending.length - at >= RECORD_HEAD) {
    const wireEnd = at + RECORD_HEAD + pending.readUInt32LE(at + 1);
    const textEnd = wireEnd + pending.readUInt32LE(at + 5);
    if (textEnd > pending.length) break;
    compare(pending[at], pending.subarray(at + RECORD_HEAD, wireEnd), pending.subarray(wireEnd, textEnd),
      pending.readUInt32LE(at + 9));
    at = textEnd;
  }
  pending = pending.subarray(at);
});
process.stdin.on('end', () => {
  const whole = pending.length === 0 && counts.compared > 0;
  console.log(`llhttp ${process.versions.llhttp} of node ${process.version}: ${counts.compared} inputs accepted by us, ` +
    `${counts.agreed} of them by llhttp, with ${counts.messages} equal messages`);
  if (!whole) console.log('no records, or the last one was cut');
  process.exit(whole ? 0 : 1);
});
