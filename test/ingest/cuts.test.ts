/**
 * Requests cut at any byte and sent in chunks of any size, compared with a model of what the WAL may hold.
 *
 * Law: an acknowledged request is stored once, as it was sent; nothing of a cut request is stored.
 */
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { seededRandom } from '#lib/random.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { RawClient } from '../support/raw-http.ts'

const requests = 400
const parallel = 8

type Fate = 'acknowledged' | 'sent whole' | 'cut'

test('the WAL never holds part of a request', async () => {
  const seed = Number(process.env['INLET_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`seed ${seed}: INLET_TEST_SEED=${seed} repeats this run`)
  const random = generator(seed)
  const endpoint = anEndpoint()
  await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }) })

  const fates = new Map<string, Fate>()
  let next = 0
  const worker = async () => {
    while (next < requests) {
      const payload = aPayload(next++, random)
      fates.set(payload, await send(node.url, payload, random))
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))

  const stored = (await node.stored(endpoint.id)).map((frame) => ({ ...frame, text: frame.payload.toString() }))
  const counts = new Map<string, number>()
  for (const { text, recordCount } of stored) {
    counts.set(text, (counts.get(text) ?? 0) + 1)
    expect(fates.get(text), `seed ${seed}: stored, but ${JSON.stringify(text.slice(0, 80))}…`).not.toBe('cut')
    expect(fates.has(text), `seed ${seed}: nobody sent ${JSON.stringify(text.slice(0, 80))}`).toBe(true)
    expect(recordCount).toBe(text.split('\n').filter((line) => line.trim() !== '').length)
  }
  for (const [payload, fate] of fates) {
    const count = counts.get(payload) ?? 0
    if (fate === 'acknowledged') expect(count, `seed ${seed}: ${payload.slice(0, 80)}`).toBe(1)
    else expect(count).toBeLessThanOrEqual(1)
  }
  const seen = new Set(fates.values())
  expect(seen).toContain('acknowledged')
  expect(seen).toContain('cut')
}, 60_000)

/** Sends a request, or only its beginning, in chunks of random sizes. */
async function send(url: string, payload: string, random: (below: number) => number): Promise<Fate> {
  const bytes = encode(payload, random)
  const end = random(2) === 0 ? bytes.length : random(bytes.length)
  await using client = await RawClient.connect(url, { allowHalfOpen: random(2) === 0 })
  const pieceMax = 1 + random(random(2) === 0 ? 16 : 4_096)
  for (let at = 0; at < end; ) {
    const pieceEnd = Math.min(end, at + 1 + random(pieceMax))
    await client.send(bytes.subarray(at, pieceEnd))
    at = pieceEnd
  }
  if (end < bytes.length) {
    const way = random(3)
    if (way === 0) client.socket.resetAndDestroy()
    else if (way === 1) client.socket.end()
    else client.socket.destroy()
    if (way === 1 && end > 0) await client.closed
    return 'cut'
  }
  if (random(4) === 0) {
    client.socket.resetAndDestroy()
    return 'sent whole'
  }
  const { status } = await client.answer()
  expect(status).toBe(202)
  return 'acknowledged'
}

function encode(payload: string, random: (below: number) => number): Buffer {
  const headers = ['POST /v1/ingest HTTP/1.1', 'Host: x', `X-API-Key: ${secretOf('a')}`, 'Content-Type: application/x-ndjson']
  let body: Buffer = Buffer.from(payload)
  const encoding = random(4)
  if (encoding === 0) {
    headers.push('Content-Encoding: gzip')
    body = gzipSync(body)
  } else if (encoding === 1) {
    headers.push('Content-Encoding: zstd')
    body = zstdCompressSync(body)
  }
  if (random(2) === 0) headers.push(`Content-Length: ${body.length}`)
  else {
    headers.push('Transfer-Encoding: chunked')
    body = chunked(body, random)
  }
  return Buffer.concat([Buffer.from(`${headers.join('\r\n')}\r\n\r\n`), body])
}

function chunked(body: Buffer, random: (below: number) => number): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; ) {
    const end = Math.min(body.length, at + 1 + random(2_000))
    parts.push(Buffer.from(`${(end - at).toString(16)}\r\n`), body.subarray(at, end), Buffer.from('\r\n'))
    at = end
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

/** Lines that are unique to one request, with blank ones and carriage returns. */
function aPayload(number: number, random: (below: number) => number): string {
  const lines = Array.from({ length: 1 + random(40) }, (_, line) => {
    const text = `{"request":${number},"line":${line},"text":"${'x'.repeat(random(300))}"}`
    return [text, `${text}\r`, `${text}\n  \t`][random(3)]
  })
  return lines.join('\n') + (random(2) === 0 ? '\n' : '')
}

/** Small integers from a seed. */
function generator(seed: number): (below: number) => number {
  const { fraction } = seededRandom(seed)
  return (below) => Math.floor(fraction() * below)
}
